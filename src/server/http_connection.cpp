#include "server/http_connection.h"

#include <algorithm>

#include "server/errors.h"
#include "server/http_reply.h"
#include "server/http_text.h"

namespace limpid {

namespace http = boost::beast::http;

namespace {

constexpr size_t kMostEarlyBytes = 64 << 10;        // of a next request, while an answer is sent
constexpr size_t kMostChunkHeaderBytes = 16 << 10;  // of one chunk, its extensions included
constexpr size_t kMostIdleBytes = 64 << 10;         // of a buffer, between two answers
constexpr std::chrono::microseconds kQuickTokens{300};  // between two: they do not come alone

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpShared> shared, Tcp::socket socket,
                               asio::ssl::context* context)
    : shared_(std::move(shared)),
      socket_(std::move(socket), context),
      remote_(socket_.peer_address()),
      header_check_(limits().n_header_fields) {
  ++shared_->n_open;
}

HttpConnection::~HttpConnection() { close(); }

void HttpConnection::start() {
  ErrorCode ignored;
  socket_.plain().set_option(Tcp::no_delay(true), ignored);
  waits_since_ = Clock::now();
  read_deadline_ = Clock::now() + limits().header_time;
  post([](HttpConnection& self) {
    if (!self.socket_.is_encrypted()) return self.next_request();
    self.socket_.handshake(self.guarded(
        [](HttpConnection& same, ErrorCode error) { error ? same.close() : same.next_request(); }));
  });
}

// The buffers of a large answer do not stay while the connection waits.
void HttpConnection::next_request() {
  if (state_ == State::kClosed) return;
  state_ = State::kHeader;
  header_check_ = HttpHeaderCheck(limits().n_header_fields);
  parser_.reset();
  request_ = {};
  request_.remote = remote_;
  request_.is_local = is_loopback(remote_) || remote_ == socket_.own_address();
  n_early_bytes_ = n_answer_bytes_ = 0;
  status_ = 0;
  reply_.reset();
  waits_since_ = Clock::now();
  read_deadline_ = Clock::now() + limits().idle_time;
  if (writing_.capacity() > kMostIdleBytes) std::string().swap(writing_);
  {
    const std::lock_guard lock(output_mutex_);
    after_output_ = After::kMore;
    if (queued_.capacity() > kMostIdleBytes) std::string().swap(queued_);
  }
  take_input();
  read();
}

void HttpConnection::read() {
  if (is_reading_ || state_ == State::kClosed) return;
  is_reading_ = true;
  socket_.read_some(asio::buffer(read_buffer_), guarded(&HttpConnection::on_read));
}

void HttpConnection::on_read(ErrorCode error, size_t n_bytes) {
  is_reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return take_end();
  if (waits_for_request()) read_deadline_ = Clock::now() + limits().header_time;
  input_.append(read_buffer_.data(), n_bytes);
  take_input();
  // Bytes of the next request may wait until the last ones of this answer are written.
  if (state_ != State::kAnswer || input_.empty()) read();
}

// The client has closed. It may have read all of the answer before this side hears that the last
// byte is written: the answer then ends as others do.
void HttpConnection::take_end() {
  has_peer_closed_ = true;
  if (state_ != State::kAnswer || after_output() == After::kMore) close();
}

void HttpConnection::take_input() {
  if (input_.empty()) return;
  if (state_ == State::kHeader) return read_header();
  if (state_ == State::kBody) return read_body();
  if (state_ == State::kAnswer) return take_early_bytes();
  n_early_bytes_ += input_.size();
  input_.clear();
  if (n_early_bytes_ > limits().body_bytes) close();
}

// A client that sends its next request before it has the answer to this one (pipelining) gets this
// answer, and must then connect again: RFC 9112, section 9.3.2, allows it, and no byte can be taken
// for a part of another request. Once the answer is complete, the next request may come, even
// though this side has not yet heard that the last byte is written.
void HttpConnection::take_early_bytes() {
  if (after_output() == After::kNextRequest && !closes_after_) return;
  closes_after_ = true;
  n_early_bytes_ += input_.size();
  input_.clear();
  if (n_early_bytes_ > kMostEarlyBytes) close();
}

void HttpConnection::read_header() {
  using Check = HttpHeaderCheck::State;
  const Check check = header_check_.look(input_);
  if (check == Check::kMalformed) return refuse(400, "the request's header is malformed");
  if (check == Check::kTooManyFields || header_check_.n_bytes() > limits().header_bytes)
    return refuse(431, "the request's header is too large");
  if (check == Check::kComplete) parse_header();
}

void HttpConnection::parse_header() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits().header_bytes + 1));
  parser_->body_limit(limits().body_bytes);
  ErrorCode error;
  parser_->put(asio::buffer(input_.data(), header_check_.n_bytes()), error);
  input_.erase(0, header_check_.n_bytes());
  const bool too_large = error == http::error::body_limit;
  if (!too_large && (error || !parser_->is_header_done()))
    return refuse(400, "the request's header is malformed");

  const auto& message = parser_->get();
  request_.method = std::string(message.method_string());
  for (const auto& field : message)
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  // The parser knows no other versions than 1.0 and 1.1. A whole URL as the target gives the
  // request a Host, so that the headers as they came are looked at before.
  HttpProblem problem = header_problem(request_, message.version() == 10);
  if (!read_target(std::string_view(message.target().data(), message.target().size()), request_))
    return refuse(400, "the request's target is not a path");
  if (too_large) return refuse(413, "the request's body is too large");
  if (problem.status == 0) problem = sender_problem(request_, shared_->options);
  if (problem.status != 0) return refuse(problem.status, problem.text);
  begin_body();
}

void HttpConnection::begin_body() {
  waits_since_ = kNever;
  if (parser_->is_done()) return dispatch();
  state_ = State::kBody;
  body_began_ = Clock::now();
  read_deadline_ = body_began_ + limits().body_time;
  parser_->eager(true);
  // A client of HTTP/1.0 would take "100 Continue" for the answer (RFC 9110, section 10.1.1).
  const bool waits = !request_.header("Expect").empty() && parser_->get().version() != 10;
  if (waits && input_.empty()) queue("HTTP/1.1 100 Continue\r\n\r\n", After::kMore, false);
  take_input();
}

// The parser takes what it can of the input, and leaves the beginning of a chunk's header until the
// rest of it has come.
void HttpConnection::read_body() {
  while (!input_.empty() && !parser_->is_done()) {
    ErrorCode error;
    const size_t n_taken = parser_->put(asio::buffer(input_), error);
    input_.erase(0, n_taken);
    n_body_bytes_ += n_taken;
    shared_->n_body_bytes += n_taken;
    if (error == http::error::need_more) {
      if (n_taken == 0) break;
    } else if (error) {
      if (error == http::error::body_limit) return refuse(413, "the request's body is too large");
      return refuse(400, "the request's body is malformed");
    }
  }
  if (parser_->is_done()) return dispatch();
  if (shared_->n_body_bytes > limits().all_body_bytes)
    return refuse(503, "the server is receiving too much data: try again later");
  // Chunks of one byte come with headers of five.
  const bool is_padded = n_body_bytes_ > 8 * limits().body_bytes + kMostChunkHeaderBytes;
  if (input_.size() > kMostChunkHeaderBytes || is_padded)
    return refuse(400, "the request's body is malformed");
  read_deadline_ = body_began_ + limits().body_time +
                   std::chrono::milliseconds(1000 * n_body_bytes_ / limits().body_rate);
}

void HttpConnection::begin_answer() {
  state_ = State::kAnswer;
  read_deadline_ = waits_since_ = kNever;
  shared_->n_body_bytes -= std::exchange(n_body_bytes_, 0);
  answer_began_ = Clock::now();
  closes_after_ = !input_.empty();  // more bytes than the request's
  input_.clear();
}

void HttpConnection::dispatch() {
  begin_answer();
  is_counted_ = !shared_->is_draining;
  if (is_counted_) ++shared_->n_answers;
  const auto& message = parser_->get();
  const std::string origin(request_.header("Origin"));
  const bool is_named = std::ranges::count(shared_->options.allowed_origins, origin) > 0;
  const auto reply = std::make_shared<ConnectionReply>(
      shared_from_this(),
      ConnectionReply::Context{request_.method == "HEAD", message.version() == 10,
                               message.keep_alive() && !closes_after_, is_named ? origin : ""});
  reply_ = reply;
  if (is_named && !request_.header("Access-Control-Request-Method").empty())
    return reply->send(preflight_answer(request_));
  // Only the handler gets the body, of up to 16 MB: answers take minutes and need little of it.
  HttpRequest request = request_;
  request.body = std::move(parser_->get().body());
  try {
    shared_->handler(std::move(request), reply);
  } catch (...) {
    send_error(*reply, style_of(request_.path), as_api_error(std::current_exception()));
  }
}

void HttpConnection::refuse(int status, std::string_view message) {
  begin_answer();
  status_ = status;
  const HttpAnswer answer = refusal(request_.path, status, message);
  queue(header_text(answer, BodyLength::kKnown, false) + answer.body, After::kClose, false);
}

// Called by the engine's thread for each token, so it does as little as it can: it adds the bytes,
// and wakes the connection's strand unless that will look anyway. While the strand writes, or waits
// for a processor, the bytes of several tokens gather and go out with one system call.
//
// It also notices a slow reader. The engine cannot wait for such a client, and the server cannot
// keep bytes without a limit, so the connection is closed.
bool HttpConnection::queue(std::string_view bytes, After after, bool is_stream) {
  bool is_too_slow = false, starts = false;
  {
    const std::lock_guard lock(output_mutex_);
    if (is_closed_) return false;
    is_too_slow = is_stream && is_behind();
    if (is_too_slow) {
      is_closed_ = true;  // the end of a stream that lacks a part must not follow
    } else {
      queued_ += bytes;
      n_unsent_ += bytes.size();
      if (after != After::kMore) after_output_ = after;
      if (is_stream && !flush_is_due_) send_now();
      starts = !flush_is_due_ && (!queued_.empty() || after != After::kMore);
      flush_is_due_ = flush_is_due_ || starts;
    }
  }
  if (is_too_slow) abort();
  if (starts) post(&HttpConnection::flush);
  return !is_too_slow;
}

// A token that comes alone goes out at once, from the thread that made it, so that no other thread
// has to be woken: on two cores that both compute, a wake-up costs more than the system call does.
// Tokens that come quickly, one after another, are left to the strand, which sends several with one
// call. What the socket does not take, an error included, is left to the strand too.
void HttpConnection::send_now() {
  const auto now = Clock::now();
  const bool comes_alone = now - last_queued_ > kQuickTokens;
  last_queued_ = now;
  if (!comes_alone || socket_.is_encrypted()) return;
  const ssize_t n_sent = ::send(socket_.plain().native_handle(), queued_.data(), queued_.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n_sent <= 0) return;
  queued_.erase(0, static_cast<size_t>(n_sent));
  n_unsent_ -= static_cast<size_t>(n_sent);
  n_answer_bytes_ += static_cast<size_t>(n_sent);
}

// Swaps two buffers: the strand writes one without the mutex, and other threads fill the other.
void HttpConnection::flush() {
  if (state_ == State::kClosed) return;
  bool is_complete = false;
  {
    const std::lock_guard lock(output_mutex_);
    writing_.clear();
    writing_.swap(queued_);
    flush_is_due_ = !writing_.empty();
    is_complete = !flush_is_due_ && after_output_ != After::kMore;
  }
  n_written_ = 0;
  if (!writing_.empty()) return write_some();
  write_deadline_ = kNever;
  if (is_complete) finish_answer();
}

void HttpConnection::write_some() {
  write_deadline_ = Clock::now() + limits().write_time;
  socket_.write_some(asio::buffer(writing_) + n_written_, guarded(&HttpConnection::on_written));
}

void HttpConnection::on_written(ErrorCode error, size_t n_bytes) {
  if (error) return close();
  n_written_ += n_bytes;
  n_answer_bytes_ += n_bytes;
  {
    const std::lock_guard lock(output_mutex_);
    n_unsent_ -= n_bytes;
  }
  n_written_ < writing_.size() ? write_some() : flush();
}

void HttpConnection::finish_answer() {
  if (state_ != State::kAnswer) return;
  log(status_);
  if (std::exchange(is_counted_, false)) --shared_->n_answers;
  if (closes_after_ || after_output() == After::kClose || has_peer_closed_) return linger();
  next_request();
}

}  // namespace limpid
