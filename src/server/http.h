// An HTTP/1.1 server: takes requests apart, refuses what is malformed, too large or too slow, and
// hands the others to one handler. It knows nothing of language models.
//
//   HttpServer server({.port = 8080}, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
//     reply->send({200, "text/plain", "you asked for " + request.path + "\n"});
//   });
//   …
//   server.stop(std::chrono::seconds(10));
//
// A reply is an object of its own because an answer takes long: the handler returns at once, and
// the engine's thread writes to the reply for seconds or minutes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limpid {

// Names and values in the order of the message. Names are compared without regard to case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET", …
  std::string path;    // begins with '/'; %XX replaced, without the query
  std::string query;   // what follows '?', as it was sent
  HttpHeaders headers;
  std::string body;       // chunks joined
  std::string remote;     // the peer's address, without its port
  bool is_local = false;  // the peer is a program of this machine

  // The value of the first header of that name; "" when there is none.
  std::string_view header(std::string_view name) const;
};

// The value of `name` in a query "a=1&b=%20", with %XX and + replaced; "" when it is absent.
std::string query_value(std::string_view query, std::string_view name);

// A whole answer.
struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  HttpHeaders headers{};  // in addition to those that the server writes
};

// The answer to one request: either send(), or begin_stream(), write()… and end(). All methods may
// be called from any thread and never wait for the client. After the client has gone, and after the
// answer's end, they do nothing. An answer that is dropped before its end becomes a 500, or breaks
// the stream off.
class HttpReply {
 public:
  HttpReply() = default;
  HttpReply(const HttpReply&) = delete;
  HttpReply& operator=(const HttpReply&) = delete;
  virtual ~HttpReply() = default;

  virtual void send(HttpAnswer answer) = 0;
  // Sends status and headers. The body of `answer` is ignored.
  virtual void begin_stream(HttpAnswer answer) = 0;
  // Gives false when the client has gone, or has been closed because it reads too slowly.
  virtual bool write(std::string_view chunk) = 0;
  virtual void end() = 0;
  // `callback` is called once, on a thread of the server, when the client goes before the answer's
  // end; at once when it has gone already. It is also called when stop() cuts the answer off: it
  // may then end a stream with an error, and what had not begun has been answered with 503. The end
  // of the answer forgets it.
  virtual void on_gone(std::function<void()> callback) = 0;
  // Tells the server's log why the answer fails, where the client does not learn it. "": nothing.
  virtual void log_failure(std::string_view /*reason*/) {}
};

// Called on a thread of the server, for several requests at a time. It must not wait. What it
// throws becomes a 500, or a 503 for lack of memory.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

// One finished answer, for a log. Nothing of bodies is in it.
struct HttpLogEntry {
  std::string remote, method, path;
  int status = 0;  // 499: the client went before the end
  double seconds = 0;
  uint64_t n_bytes = 0;  // of the answer, headers included
};

struct HttpLimits {
  size_t header_bytes = 32 << 10;
  size_t n_header_fields = 100;
  size_t body_bytes = 16 << 20;
  size_t all_body_bytes = 256 << 20;  // of all requests that are not complete
  size_t n_connections = 1024;
  // A client is closed that lets more bytes of a stream wait, and takes less than so many of them
  // within `unsent_time`. The server itself may write more at once: a large event, or many.
  size_t unsent_bytes = 1 << 20;
  std::chrono::milliseconds unsent_time{5'000};
  std::chrono::milliseconds header_time{10'000};  // from a request's first byte to its headers' end
  // A body may take this long, and a second more for each `body_rate` bytes that have arrived.
  std::chrono::milliseconds body_time{10'000};
  size_t body_rate = 4096;
  std::chrono::milliseconds idle_time{30'000};   // between two requests
  std::chrono::milliseconds write_time{30'000};  // without the client taking a byte
};

struct HttpOptions {
  // Addresses or names, between commas; "0.0.0.0" or "::": all addresses.
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // of all of them; 0: one that is free
  int n_threads = 2;
  // A page on the web can make a browser send requests to this machine under a name of the page's
  // choice (DNS rebinding). So the header Host must name localhost, a loopback address, one of
  // these ("name" or "name:port"), or any address while the server listens on others than loopback.
  // In that last case an empty list allows every Host, but allows pages (header Origin) only under
  // an address.
  std::vector<std::string> allowed_hosts{};
  // Origins ("https://example.org") whose pages may use the server from a browser, besides its own.
  std::vector<std::string> allowed_origins{};
  std::string tls_certificate{};  // files in PEM; both or neither
  std::string tls_key{};
  HttpLimits limits{};
  std::function<void(const HttpLogEntry&)> log{};  // called on threads of the server
  // HttpReply::log_failure, and what has ended a connection; on any thread.
  std::function<void(std::string_view path, std::string_view reason)> log_failure{};
};

// Serves on threads of its own from its construction to stop() or its end.
class HttpServer {
 public:
  // Throws ArgumentError for an address that cannot be used; ResourceError when the port is taken,
  // a certificate cannot be read, or a thread cannot be started.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();

  uint16_t port() const;
  // Connections without a request close. The answers that are under way go on, for at most
  // `patience`, and are then cut off; until they have ended, new requests still reach the handler,
  // which may refuse them.
  // Returns when all threads have ended; at once when they have been stopped before.
  void stop(std::chrono::milliseconds patience);
  size_t n_connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace limpid
