// The texts of HTTP: what targets and header fields contain, and the bytes of an answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http.h"

namespace limpid {

// Whether two names of header fields are the same: letters of ASCII without regard to case.
bool same_name(std::string_view a, std::string_view b);

// "a%20b" -> "a b". Nothing for a '%' without two hexadecimal digits, and for %00.
std::optional<std::string> percent_decoded(std::string_view text);

// "/v1/models?a=1" -> path "/v1/models" and query "a=1" of `request`. The host and port of a whole
// URL become the value of the request's header Host (RFC 9112, section 3.2.2). False for other
// targets: "*", a host and port, a URL with a user's name.
bool read_target(std::string_view target, HttpRequest& request);

// A name for HttpOptions::allowed_hosts and an origin for allowed_origins, as browsers write them:
// in lower case, without a last slash, and an origin without the port that its scheme has anyway.
// Nothing for a text that no browser would send: "https://a.example/chat", or "a.example" as an
// origin.
std::optional<std::string> normal_host(std::string_view host);
std::optional<std::string> normal_origin(std::string_view origin);

// Whether a host, as Host names it without its port, or a peer's address is this machine's own.
bool is_loopback(std::string_view host);

// Whether the sender of a request with this header Host may read the server's answer, and whether a
// page of `origin` may send requests to the server at `host`; without an origin: yes, it is not a
// page. See HttpOptions::allowed_hosts and allowed_origins.
bool is_host_allowed(std::string_view host, const HttpOptions& options);
bool is_origin_allowed(std::string_view origin, std::string_view host, const HttpOptions& options);

struct HttpProblem {
  int status = 0;  // 0: none
  std::string_view text{};
};

// Which requests are refused for their headers, before their body is read: those that servers and
// proxies could read differently (how long is the body?), and what is not supported.
HttpProblem header_problem(const HttpRequest& request, bool is_http_1_0);
// Who asks: see HttpOptions::allowed_hosts and allowed_origins.
HttpProblem sender_problem(const HttpRequest& request, const HttpOptions& options);

// "Mon, 23 Nov 2026 14:30:32 GMT" (RFC 9110, section 5.6.7)
std::string http_date(int64_t unix_seconds);

// How the client learns where the body of an answer ends.
enum class BodyLength { kKnown, kChunked, kUntilClose };

// Status line and header fields of `answer`, up to the empty line. Line breaks in header values
// become blanks.
std::string header_text(const HttpAnswer& answer, BodyLength length, bool keep_alive);
// The answer to a browser that asks whether a page of an allowed origin may send `request`.
HttpAnswer preflight_answer(const HttpRequest& request);
// "5\r\nhello\r\n"
std::string chunk_text(std::string_view data);

}  // namespace limpid
