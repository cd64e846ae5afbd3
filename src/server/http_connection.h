// One client's connection: reads requests one after another and writes their answers. Included by
// http_connection.cpp and http_server.cpp only, because it needs Boost.
//
//   kHandshake -> kHeader -> kBody -> kAnswer -> kHeader -> …
//                    \________\_________\______-> kLinger -> kClosed
//
// Everything runs on the connection's strand, one handler at a time, except the methods that may be
// called from any thread. A read is pending in nearly every state, so the connection notices at
// once when the client goes, also while nothing is written.
#pragma once

#include <array>
#include <atomic>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/optional.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http.h"
#include "server/http_header_check.h"
#include "server/http_socket.h"

namespace limpid {

using Clock = std::chrono::steady_clock;
using Deadline = std::atomic<Clock::time_point>;
inline constexpr Clock::time_point kNever = Clock::time_point::max();

class HttpConnection;

// What the connections of a server share. Each of them keeps it alive.
struct HttpShared {
  asio::io_context io;
  HttpOptions options;
  HttpHandler handler;
  std::atomic<bool> is_draining = false;
  std::atomic<int64_t> n_answers = 0;    // under way, and begun before the draining
  std::atomic<size_t> n_open = 0;        // connections
  std::atomic<size_t> n_body_bytes = 0;  // of requests that are not complete

  std::mutex mutex;
  std::vector<std::weak_ptr<HttpConnection>> connections;  // guarded by the mutex

  // In a catch: tells the log what was thrown, if there is memory for that. `path`: "" for none.
  void tell_failure(std::string_view path) const noexcept;
};

// What follows the bytes that are to be written.
enum class After { kMore, kNextRequest, kClose };

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpShared> shared, Tcp::socket socket,
                 asio::ssl::context* context);
  ~HttpConnection();

  void start();

  // The following may be called from any thread.
  //
  // Adds bytes to what is to be written. Gives false when the connection is closed, and when it is
  // closed now because the client reads a stream too slowly (HttpLimits::unsent_bytes).
  bool queue(std::string_view bytes, After after, bool is_stream);
  void set_status(int status) { status_ = status; }
  void abort() noexcept;
  // Ends an answer with an error, and gives the client little time to take it. Closes the
  // connection if it does anything else, so a later call closes it after the error.
  void cut_off() noexcept;
  // Closes it if it has been waiting for the header of a request, or of TLS, since before `time`.
  void close_if_idle_since(Clock::time_point time) noexcept;
  // Ends the connection if a time limit has passed.
  void check_time(Clock::time_point now) noexcept;
  // Since when it has been waiting for the header of a request; kNever if it does anything else.
  Clock::time_point waits_since() const { return waits_since_; }
  const HttpShared& shared() const { return *shared_; }
  const std::string& path() const { return request_.path; }  // of the request that is answered

 private:
  enum class State { kHandshake, kHeader, kBody, kAnswer, kLinger, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read();
  void on_read(ErrorCode error, size_t n_bytes);
  void take_end();
  void take_input();
  void read_header();
  void parse_header();
  void begin_body();
  void read_body();
  void dispatch();
  void take_early_bytes();
  void refuse(int status, std::string_view message);
  void begin_answer();
  void send_now();
  void flush();
  void write_some();
  void on_written(ErrorCode error, size_t n_bytes);
  void finish_answer();
  void next_request();
  void linger();
  void expire();
  void close();
  void log(int status);
  void fail();
  void shut_down() noexcept;  // needs no memory
  // A step of the connection, as a handler for Asio. What the step throws ends the connection, and
  // not the thread that runs it.
  template <typename Step>
  auto guarded(Step step) {
    return [self = shared_from_this(), step](auto... results) {
      try {
        std::invoke(step, *self, results...);
      } catch (...) {
        self->fail();
      }
    };
  }
  // Runs a step on the strand, soon. Without memory for that, the connection ends.
  template <typename Step>
  void post(Step step) noexcept {
    try {
      asio::post(socket_.get_executor(), guarded(step));
    } catch (...) {
      shut_down();
    }
  }
  bool waits_for_request() const { return state_ == State::kHeader && input_.empty(); }
  After after_output() {
    const std::lock_guard lock(output_mutex_);
    return after_output_;
  }
  const HttpLimits& limits() const { return shared_->options.limits; }
  // For each piece of a stream, with the mutex: whether too much has waited for too long.
  bool is_behind() {
    const auto now = Clock::now();
    const size_t most = limits().unsent_bytes;
    if (n_unsent_ <= most || n_answer_bytes_ - n_taken_ >= most) {
      taken_at_ = now;
      n_taken_ = n_answer_bytes_;
    }
    return now - taken_at_ > limits().unsent_time;
  }

  const std::shared_ptr<HttpShared> shared_;  // first: the socket needs its io_context
  HttpSocket socket_;
  State state_ = State::kHandshake;
  std::string remote_;
  std::array<char, 8192> read_buffer_;
  bool is_reading_ = false;
  bool has_peer_closed_ = false;
  std::string input_;  // read, and not yet part of a request
  HttpHeaderCheck header_check_;
  boost::optional<Parser> parser_;
  HttpRequest request_;
  Clock::time_point body_began_;
  size_t n_body_bytes_ = 0;   // as they came over the wire
  size_t n_early_bytes_ = 0;  // that came when none was expected

  std::weak_ptr<class ConnectionReply> reply_;
  Clock::time_point answer_began_;
  bool is_counted_ = false;    // in HttpShared::n_answers
  bool closes_after_ = false;  // the answer that is under way is the last
  std::atomic<int> status_ = 0;
  std::atomic<uint64_t> n_answer_bytes_ = 0;

  Deadline read_deadline_ = kNever, write_deadline_ = kNever, waits_since_ = kNever;

  std::mutex output_mutex_;  // guards the next eight
  Clock::time_point last_queued_;
  std::string queued_;
  size_t n_unsent_ = 0;         // of queued_ and writing_
  Clock::time_point taken_at_;  // when the client was last on time; it had taken n_taken_ bytes
  uint64_t n_taken_ = 0;
  bool flush_is_due_ = false;  // flush() will run, or write_some() is under way
  After after_output_ = After::kMore;
  bool is_closed_ = false;

  std::string writing_;
  size_t n_written_ = 0;  // of it
};

}  // namespace limpid
