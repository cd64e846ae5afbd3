// The reply that a connection hands to the handler. Included by http_connection.cpp only, because
// it needs Boost.
#pragma once

#include "server/http_connection.h"
#include "server/http_text.h"

namespace limpid {

// Keeps its connection alive. Formats what is sent; the connection writes the bytes.
class ConnectionReply final : public HttpReply {
 public:
  struct Context {
    bool is_head = false;      // the method is HEAD: no body
    bool is_http_1_0 = false;  // a stream has no chunks, and ends with the connection
    bool keep_alive = true;
    std::string allowed_origin;  // "": nothing is said about origins
  };
  ConnectionReply(std::shared_ptr<HttpConnection> connection, Context context);
  ~ConnectionReply() override;

  void send(HttpAnswer answer) override;
  void begin_stream(HttpAnswer answer) override;
  bool write(std::string_view chunk) override;
  void end() override;
  void on_gone(std::function<void()> callback) override;
  void log_failure(std::string_view reason) override;

  // The connection calls it when the client has gone.
  void set_gone();
  // The connection calls it when the server ends and waits no longer for the answer.
  void cut_off();

 private:
  enum class State { kWaiting, kStreaming, kEnded, kGone };

  // Status line and headers; decides whether the connection stays open.
  std::string begin(HttpAnswer& answer, BodyLength length);
  After after() const { return context_.keep_alive ? After::kNextRequest : After::kClose; }

  const std::shared_ptr<HttpConnection> connection_;
  std::mutex mutex_;  // guards what follows
  Context context_;
  State state_ = State::kWaiting;
  std::function<void()> on_gone_;
};

}  // namespace limpid
