// One request over HTTP whose answer is read while it arrives, as a stream of events.
#pragma once

#include <curl/curl.h>

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
      HttpRequest request, GoOn go_on = [] { return true; });
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

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
  template <auto release>
  struct Release {
    template <typename Handle>
    void operator()(Handle* handle) const {
      release(handle);
    }
  };

  template <typename Value>
  void set(CURLoption option, Value value);
  void set_up_download();
  void set_up_post();
  // Waits until `is_enough` holds, the exchange has ended or `go_on` ended it. What came before a
  // connection broke is given first, then the fault.
  template <typename Predicate>
  void go_on_until(Predicate is_enough);
  void end();
  long last_status() const;  // of the newest header, whole or not
  static size_t on_body(const char* bytes, size_t size, size_t count, void* self) noexcept;
  static size_t on_header_line(const char*, size_t size, size_t count, void* self) noexcept;

  HttpRequest request_;
  GoOn go_on_;
  std::string received_;
  bool has_header_ = false;  // of the answer, whole
  bool is_over_ = false;
  bool was_stopped_ = false;  // by go_on
  std::optional<HttpFault> fault_;
  // The last one is released first, which also takes it out of multi_.
  std::unique_ptr<curl_slist, Release<curl_slist_free_all>> headers_;
  std::unique_ptr<CURLM, Release<curl_multi_cleanup>> multi_;
  std::unique_ptr<CURL, Release<curl_easy_cleanup>> easy_;
};

}  // namespace limpid::cli
