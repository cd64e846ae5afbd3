#include "server/http_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

#include "base/text.h"

namespace limpid {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// "localhost:8080" -> "localhost", "[::1]:8080" -> "::1". An address of IPv6 has colons of its own,
// so RFC 3986, section 3.2.2, puts brackets around it.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

// Without brackets and port. A name such as 127.example.org is not an address.
bool is_address(std::string_view host) {
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return (!host.empty() && is_number) || host.find(':') != std::string_view::npos;
}

// With its port, or as a name for any port.
bool is_listed(std::string_view host, const std::vector<std::string>& list) {
  return std::ranges::any_of(list, [&](const std::string& other) {
    return same_name(other, without_port(host)) || same_name(other, host);
  });
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

// A server that listens on :: sees a peer of IPv4 as ::ffff:127.0.0.1 (RFC 4291, section 2.5.5.2).
bool is_loopback(std::string_view host) {
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view v4 = host.substr(host.starts_with(kMapped) ? kMapped.size() : 0);
  return same_name(host, "localhost") || host == "::1" ||
         (is_address(v4) && v4.starts_with("127."));
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

// %00 is refused as well: a zero byte ends a string in C, so two programs could read two paths.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() < 2 || end != digits.data() + 2 || byte == 0) return std::nullopt;
    decoded += static_cast<char>(byte);
    at += 2;
  }
  return decoded;
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view entry = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), entry.size() + 1));
    const size_t equals = std::min(entry.find('='), entry.size());
    if (entry.substr(0, equals) != name) continue;
    std::string value(entry.substr(std::min(equals + 1, entry.size())));
    std::ranges::replace(value, '+', ' ');
    return percent_decoded(value).value_or("");
  }
  return "";
}

namespace {

// Takes "http://localhost:8080" from the front of `target`, and gives "localhost:8080". Nothing for
// a target that is not a URL, and for one with a user's name, which could deceive a reader.
std::optional<std::string_view> take_authority(std::string_view& target) {
  std::string_view rest = target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (same_name(target.substr(0, scheme.size()), scheme)) rest = target.substr(scheme.size());
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const bool is_plain = !authority.empty() && authority.find_first_of("@#") == authority.npos;
  if (rest.size() == target.size() || !is_plain) return std::nullopt;
  target = rest.substr(authority.size());
  return authority;
}

}  // namespace

bool read_target(std::string_view target, HttpRequest& request) {
  if (!target.starts_with('/')) {
    const auto authority = take_authority(target);
    if (!authority) return false;
    std::erase_if(request.headers,
                  [](const auto& field) { return same_name(field.first, "Host"); });
    request.headers.emplace_back("Host", *authority);
  }
  const size_t question = std::min(target.find('?'), target.size());
  auto path = percent_decoded(target.substr(0, question));
  if (!path) return false;
  request.path = path->empty() ? "/" : std::move(*path);
  request.query = target.substr(std::min(question + 1, target.size()));
  return true;
}

namespace {

constexpr std::string_view kLettersAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789";

std::string lower(std::string_view text) {
  std::string all;
  for (const char c : text) all += lower(c);
  return all;
}

bool consists_of(std::string_view text, std::string_view characters) {
  return std::ranges::all_of(text, [&](char c) {
    return kLettersAndDigits.find(c) != std::string_view::npos ||
           characters.find(c) != std::string_view::npos;
  });
}

// "Model.Example.org:8080/" -> "model.example.org:8080". An address of IPv6 is in brackets.
std::optional<std::string> normal_authority(std::string_view text) {
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::string normal = lower(text);
  const bool is_v6 = normal.starts_with('[') && normal.find(']') != std::string::npos;
  const std::string_view name = without_port(normal);
  std::string_view port = std::string_view(normal).substr(name.size() + (is_v6 ? 2 : 0));
  const bool has_port = port.starts_with(':');
  if (has_port) port.remove_prefix(1);
  const bool is_port = port.find_first_not_of("0123456789") == std::string_view::npos;
  if (name.empty() || !consists_of(name, is_v6 ? ":." : "-._") || port.empty() == has_port ||
      !is_port)
    return std::nullopt;
  return normal;
}

}  // namespace

std::optional<std::string> normal_host(std::string_view host) {
  const bool lacks_brackets = std::ranges::count(host, ':') > 1 && !host.starts_with('[');
  auto normal = normal_authority(lacks_brackets ? fmt::format("[{}]", host) : std::string(host));
  // Without a port it stands for every port, as a name does.
  if (normal && normal->ends_with(']')) normal = normal->substr(1, normal->size() - 2);
  return normal;
}

// "null" is the origin of a page that is a file.
std::optional<std::string> normal_origin(std::string_view origin) {
  if (origin == "null") return "null";
  const size_t end = origin.find("://");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::string scheme = lower(origin.substr(0, end));
  auto host = normal_authority(origin.substr(end + 3));
  if (!host || !consists_of(scheme, "+-.")) return std::nullopt;
  const std::string_view port = scheme == "http" ? ":80" : scheme == "https" ? ":443" : "";
  if (!port.empty() && host->ends_with(port)) host->resize(host->size() - port.size());
  return fmt::format("{}://{}", scheme, *host);
}

// The attack (DNS rebinding): a page of evil.example asks for http://evil.example:8080, whose name
// now resolves to this machine. For the browser it is the page's own site. But Host still says
// evil.example: a name that the server does not have, and never an address.
bool is_host_allowed(std::string_view host, const HttpOptions& options) {
  const std::string_view name = without_port(host);
  if (is_loopback(name) || is_listed(host, options.allowed_hosts)) return true;
  if (std::ranges::all_of(split_list(options.host), is_loopback)) return false;
  return options.allowed_hosts.empty() || is_address(name);
}

// A page of the server itself has an origin that ends in the Host of its requests. Without
// allowed_hosts the server does not know its names, so a page under a name may be the attacker's.
// Under a name of the list a proxy may speak https in the place of the server.
bool is_origin_allowed(std::string_view origin, std::string_view host, const HttpOptions& options) {
  if (origin.empty() || std::ranges::count(options.allowed_origins, origin) > 0) return true;
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || !same_name(origin.substr(scheme + 3), host)) return false;
  if (is_listed(host, options.allowed_hosts)) return true;
  const std::string_view name = without_port(host);
  return origin.substr(0, scheme) == (options.tls_key.empty() ? "http" : "https") &&
         (is_address(name) || is_loopback(name));
}

// Most of this is against smuggling: a proxy before the server and the server itself must agree
// where a request ends. Otherwise one of them takes for a request of its own what is the end of a
// body for the other, with the rights of the client before. RFC 9112, section 6.3, says which
// length counts when there are two. Proxies have got it wrong, so nothing with two lengths is
// accepted.
HttpProblem header_problem(const HttpRequest& request, bool is_http_1_0) {
  const auto count = [&](std::string_view name) {
    return std::ranges::count_if(request.headers,
                                 [&](const auto& header) { return same_name(header.first, name); });
  };
  const auto n_hosts = count("Host");
  if (n_hosts > 1 || (n_hosts == 0 && !is_http_1_0)) return {400, "the request needs one Host"};
  const auto n_encodings = count("Transfer-Encoding");
  const bool is_list = request.header("Content-Length").find(',') != std::string_view::npos;
  if (count("Content-Length") + n_encodings > 1 || is_list || (n_encodings > 0 && is_http_1_0))
    return {400, "the length of the request's body is ambiguous"};
  if (n_encodings > 0 && !same_name(request.header("Transfer-Encoding"), "chunked"))
    return {501, "the only transfer encoding is chunked"};
  const std::string_view coding = request.header("Content-Encoding");
  if (!coding.empty() && !same_name(coding, "identity"))
    return {415, "compressed bodies are not supported"};
  const std::string_view expected = request.header("Expect");
  if (!expected.empty() && !same_name(expected, "100-continue"))
    return {417, "the only expectation is 100-continue"};
  return {};
}

// Against pages of other sites that a user has open in a browser. The browser adds both fields, and
// a page cannot change them. So a request without Host, which only HTTP/1.0 allows, does not
// come from a page.
HttpProblem sender_problem(const HttpRequest& request, const HttpOptions& options) {
  const std::string_view host = request.header("Host");
  const bool has_host = std::ranges::any_of(
      request.headers, [](const auto& field) { return same_name(field.first, "Host"); });
  const bool is_local_program = !has_host && request.is_local;
  if (!is_local_program && !is_host_allowed(host, options))
    return {403, "this server does not answer to this Host: add the name to its allowed hosts"};
  if (!is_origin_allowed(request.header("Origin"), host, options))
    return {
        403,
        "pages of this Origin may not use this server: add its name to the allowed hosts if it is "
        "the server's own page, or else the Origin to the allowed origins"};
  return {};
}

std::string http_date(int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(seconds));
}

// A line break in a value would begin a field of the sender's choice. Answers without a body have
// no length: beside 304 it would be that of the body which the client has (RFC 9110, section 8.6).
std::string header_text(const HttpAnswer& answer, BodyLength length, bool keep_alive) {
  namespace http = boost::beast::http;
  const std::string_view reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(answer.status)));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: limpid\r\n", answer.status,
                                 reason, http_date(std::time(nullptr)));
  const auto add = [&](std::string_view name, std::string_view value) {
    text.append(name).append(": ");
    for (const char c : value) text += c == '\r' || c == '\n' ? ' ' : c;
    text += "\r\n";
  };
  if (!answer.content_type.empty()) add("Content-Type", answer.content_type);
  if (length == BodyLength::kChunked) add("Transfer-Encoding", "chunked");
  const bool has_body = answer.status != 204 && answer.status != 304;
  if (length == BodyLength::kKnown && has_body)
    add("Content-Length", std::to_string(answer.body.size()));
  for (const auto& [name, value] : answer.headers) add(name, value);
  add("Connection", keep_alive ? "keep-alive" : "close");
  return text += "\r\n";
}

// Clients add fields of their own, such as X-Stainless-Lang and Anthropic-Version.
HttpAnswer preflight_answer(const HttpRequest& request) {
  const std::string fields(request.header("Access-Control-Request-Headers"));
  return {204,
          "",
          "",
          {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
           {"Access-Control-Allow-Headers",
            fields.empty() ? "Authorization, Content-Type, X-Api-Key" : fields},
           {"Access-Control-Max-Age", "600"}}};
}

// The length of a stream is unknown when its header is sent. So each piece comes as a chunk with
// its own length in hexadecimal digits, and a chunk of length 0 ends the body (RFC 9112,
// section 7.1).
std::string chunk_text(std::string_view data) {
  std::string text = fmt::format("{:x}\r\n", data.size());
  return text.append(data).append("\r\n");
}

}  // namespace limpid
