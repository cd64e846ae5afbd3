// How a connection ends: after its last answer, when a time has passed, with the server, and when a
// step of it throws.
#include <sys/socket.h>

#include <utility>

#include "server/errors.h"
#include "server/http_connection.h"
#include "server/http_reply.h"

namespace limpid {
namespace {

constexpr std::chrono::seconds kLingerTime{2};

}  // namespace

// A socket that is closed while bytes of the client are unread resets the connection, and the
// client may lose the answer (RFC 9112, section 9.6). So the connection goes on reading for a
// while.
void HttpConnection::linger() {
  state_ = State::kLinger;
  if (has_peer_closed_) return close();
  input_.clear();
  read_deadline_ = Clock::now() + kLingerTime;
  socket_.finish(guarded([](HttpConnection& self, ErrorCode) { self.close(); }));
  read();
}

// Called for every connection every 50 ms, by another strand. It only looks, because a timer for
// each connection would be set anew with each read and each write.
void HttpConnection::check_time(Clock::time_point now) noexcept {
  if (now >= read_deadline_.load() || now >= write_deadline_.load()) post(&HttpConnection::expire);
}

// On the connection's own strand, so the time may have come in the meantime: it is compared again.
void HttpConnection::expire() {
  const auto now = Clock::now();
  if (now >= write_deadline_.load()) return close();
  if (now < read_deadline_.load()) return;
  const bool is_in_request =
      state_ == State::kBody || (state_ == State::kHeader && !input_.empty());
  if (!is_in_request) return close();
  refuse(408, "the request came too slowly");
}

// Another client may come before the connection has closed: the server must not choose the same one
// to make room for it.
void HttpConnection::abort() noexcept {
  waits_since_ = kNever;
  post(&HttpConnection::close);
}

// The read or the write that is pending then ends, and closes the connection.
void HttpConnection::shut_down() noexcept {
  const std::lock_guard lock(output_mutex_);
  if (!is_closed_) ::shutdown(socket_.plain().native_handle(), SHUT_RDWR);
}

// In an answer, read_deadline_ is kNever before the first call: nothing of the client is awaited.
void HttpConnection::cut_off() noexcept {
  post([](HttpConnection& self) {
    if (self.state_ != State::kAnswer) return self.close();
    if (self.read_deadline_.load() != kNever) return;
    self.read_deadline_ = Clock::now() + kLingerTime;
    if (const auto reply = self.reply_.lock()) reply->cut_off();
  });
}

void HttpConnection::close_if_idle_since(Clock::time_point time) noexcept {
  post([time](HttpConnection& self) {
    const bool is_idle = self.state_ == State::kHandshake || self.waits_for_request();
    if (is_idle && self.waits_since() < time) self.close();
  });
}

void HttpConnection::close() {
  if (state_ == State::kClosed) return;
  const bool was_answering = state_ == State::kAnswer;
  state_ = State::kClosed;
  {
    const std::lock_guard lock(output_mutex_);
    is_closed_ = true;
    queued_.clear();
  }
  read_deadline_ = write_deadline_ = waits_since_ = kNever;
  if (std::exchange(is_counted_, false)) --shared_->n_answers;
  shared_->n_body_bytes -= std::exchange(n_body_bytes_, 0);
  socket_.close();
  --shared_->n_open;
  if (was_answering) log(499);
  if (const auto reply = reply_.lock()) reply->set_gone();  // which may throw
}

// An answer that cannot be logged is an answer all the same.
void HttpConnection::log(int status) {
  if (!shared_->options.log) return;
  const std::chrono::duration<double> seconds = Clock::now() - answer_began_;
  try {
    shared_->options.log(
        {remote_, request_.method, request_.path, status, seconds.count(), n_answer_bytes_});
  } catch (...) {
    shared_->tell_failure(request_.path);
  }
}

// A step has thrown, most often for lack of memory. A request that nobody answers is refused, if
// there is memory for that.
void HttpConnection::fail() {
  shared_->tell_failure(request_.path);
  const bool is_asked =
      state_ == State::kHeader || state_ == State::kBody || state_ == State::kAnswer;
  try {
    const ApiError error = as_api_error(std::current_exception());
    if (is_asked && status_ == 0 && reply_.expired()) return refuse(error.status(), error.what());
  } catch (...) {
    shared_->tell_failure(request_.path);
  }
  close();
}

}  // namespace limpid
