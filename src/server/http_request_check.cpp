#include "server/http_request_check.h"

#include <algorithm>

#include "server/http_text.h"

namespace limpid {

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

}  // namespace limpid
