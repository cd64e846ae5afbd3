// One request over HTTP whose answer is read while it arrives, as a stream of events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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

// The connection failed or broke.
class HttpFault : public ResourceError {
 public:
  HttpFault(const std::string& message, std::string reason, bool may_pass)
      : ResourceError(message), reason(std::move(reason)), may_pass(may_pass) {}
  std::string reason;  // in libcurl's words
  bool may_pass;       // whether trying again can help: not with an untrusted certificate
};

class HttpExchange {
 public:
  using GoOn = std::function<bool()>;  // false ends the exchange within a tenth of a second

  // Throws ResourceError when libcurl cannot be set up.
  explicit HttpExchange(
      const HttpRequest& request, GoOn go_on = [] { return true; });
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;
  ~HttpExchange();

  // Waits for the header of the answer. 0 when `go_on` ended the exchange before. Throws HttpFault,
  // which names the address, when the server does not answer.
  int64_t status();
  // "text/event-stream", without parameters. After status().
  std::string content_type() const;
  // Waits for more bytes of the body; nothing at its end and when `go_on` ended the exchange.
  // Throws HttpFault when the connection breaks.
  std::optional<std::string> read();
  // Reads the rest of the body, at most `most` bytes.
  std::string read_all(size_t most);

 private:
  struct Transfer;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace limpid::cli
