// One request over HTTP whose answer is taken while it arrives, as a stream of events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "limpid/error.hpp"

namespace limpid::cli {

struct HttpRequest {
  std::string url;
  std::string token{};  // sent as a bearer token to this host only; "": none
  std::string json{};   // the body of a POST; "": a GET
  // A download follows redirects and fails when no byte comes for 30 seconds. Other requests do
  // neither: a key is sent to the address that the user named and to no other.
  bool is_download = false;
  uint64_t first_byte = 0;  // ask for the bytes from here on (RFC 9110, 14.2)
};

// What an answer says of itself before its body.
struct HttpHead {
  int64_t status = 0;        // 0: the exchange was ended before there was an answer
  std::string content_type;  // "text/event-stream", without parameters
};

// The connection failed or broke.
class HttpFault : public ResourceError {
 public:
  HttpFault(const std::string& message, std::string reason, bool may_pass)
      : ResourceError(message), reason(std::move(reason)), may_pass(may_pass) {}
  std::string reason;  // in libcurl's words
  bool may_pass;       // whether trying again can help: not with an untrusted certificate
};

// Sends the request and calls `take` with each part of the answer's body as soon as it is there.
// The exchange ends with the body, when `take` returns false, and within a tenth of a second after
// `go_on` does. Throws HttpFault, which names the address, when the server does not answer or the
// connection breaks, ResourceError when libcurl cannot be set up, and what the callbacks throw.
HttpHead http_exchange(
    const HttpRequest& request,
    const std::function<bool(const HttpHead& head, std::string_view part)>& take,
    const std::function<bool()>& go_on = [] { return true; });

}  // namespace limpid::cli
