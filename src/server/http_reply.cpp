// A reply goes through the states kWaiting, perhaps kStreaming, and kEnded; or kGone when the
// client closes first. Each method looks at the state under the mutex, so the engine's thread may
// write while the connection's strand reports the client's end. A call that comes too late has no
// effect.
#include "server/http_reply.h"

#include "server/errors.h"

namespace limpid {

ConnectionReply::ConnectionReply(std::shared_ptr<HttpConnection> connection, Context context)
    : connection_(std::move(connection)), context_(std::move(context)) {}

// A handler that forgets an answer must not leave the client waiting.
ConnectionReply::~ConnectionReply() {
  try {
    if (state_ == State::kWaiting)
      send(refusal(connection_->path(), 500, "the request was not answered"));
  } catch (...) {
    connection_->shared().tell_failure(connection_->path());
  }
  if (state_ == State::kWaiting || state_ == State::kStreaming) connection_->abort();
}

// A page of another site may read the answer only if the answer names the site. Vary keeps a cache
// from giving the answer to another site's page.
std::string ConnectionReply::begin(HttpAnswer& answer, BodyLength length) {
  if (!context_.allowed_origin.empty()) {
    answer.headers.emplace_back("Access-Control-Allow-Origin", context_.allowed_origin);
    answer.headers.emplace_back("Vary", "Origin");
  }
  if (connection_->shared().is_draining || length == BodyLength::kUntilClose)
    context_.keep_alive = false;
  connection_->set_status(answer.status);
  return header_text(answer, length, context_.keep_alive);
}

void ConnectionReply::send(HttpAnswer answer) {
  std::function<void()> forgotten;  // destroyed when the mutex is free
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return;
  std::string text = begin(answer, BodyLength::kKnown);
  if (!context_.is_head) text += answer.body;
  connection_->queue(text, after(), false);  // without memory it throws: another answer may follow
  state_ = State::kEnded;
  forgotten.swap(on_gone_);
}

void ConnectionReply::begin_stream(HttpAnswer answer) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return;
  const auto length = context_.is_http_1_0 ? BodyLength::kUntilClose : BodyLength::kChunked;
  connection_->queue(begin(answer, length), After::kMore, true);  // may throw, as above
  state_ = State::kStreaming;
}

bool ConnectionReply::write(std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming) return false;
  if (chunk.empty() || context_.is_head) return true;  // an empty chunk would end the stream
  return context_.is_http_1_0 ? connection_->queue(chunk, After::kMore, true)
                              : connection_->queue(chunk_text(chunk), After::kMore, true);
}

void ConnectionReply::end() {
  std::function<void()> forgotten;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming) return;
  state_ = State::kEnded;
  forgotten.swap(on_gone_);
  const bool has_chunks = !context_.is_http_1_0 && !context_.is_head;
  connection_->queue(has_chunks ? "0\r\n\r\n" : "", after(), false);
}

// The callback runs without the mutex: it may take locks of the engine, whose thread may be about
// to write here.
void ConnectionReply::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kWaiting || state_ == State::kStreaming) {
      on_gone_ = std::move(callback);
      return;
    }
    if (state_ != State::kGone) return;
  }
  callback();
}

void ConnectionReply::log_failure(std::string_view reason) {
  const auto& log = connection_->shared().options.log_failure;
  if (log && !reason.empty()) log(connection_->path(), reason);
}

// The callback runs after send(), which does nothing in a stream: the API's error ends that.
void ConnectionReply::cut_off() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    callback.swap(on_gone_);
  }
  try {
    send(refusal(connection_->path(), 503, "the server is shutting down"));
  } catch (...) {
    connection_->abort();
  }
  if (callback) callback();
}

void ConnectionReply::set_gone() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kEnded || state_ == State::kGone) return;
    state_ = State::kGone;
    callback.swap(on_gone_);
  }
  if (callback) callback();
}

}  // namespace limpid
