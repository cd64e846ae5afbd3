// One type for plain and encrypted connections, so that all that follows is written once. Part of
// http_server.cpp.
//
// A TLS stream wraps the socket and has the same operations, but is another type. As a template,
// HttpConnection would be compiled twice; the branch here costs nothing beside a system call.
#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <optional>
#include <string>
#include <utility>

namespace limpid {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

class HttpSocket {
 public:
  // Encrypted when there is a context.
  HttpSocket(Tcp::socket socket, asio::ssl::context* context) : socket_(std::move(socket)) {
    if (context != nullptr) tls_.emplace(socket_, *context);
  }

  bool is_encrypted() const { return tls_.has_value(); }
  auto get_executor() { return socket_.get_executor(); }
  Tcp::socket& plain() { return socket_; }
  std::string peer_address() const {
    ErrorCode error;
    const auto endpoint = socket_.remote_endpoint(error);
    return error ? "" : endpoint.address().to_string();
  }
  std::string own_address() const {
    ErrorCode error;
    const auto endpoint = socket_.local_endpoint(error);
    return error ? "" : endpoint.address().to_string();
  }

  template <typename Handler>
  void handshake(Handler&& handler) {
    tls_->async_handshake(asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  template <typename Handler>
  void read_some(asio::mutable_buffer buffer, Handler&& handler) {
    with_stream(
        [&](auto& stream) { stream.async_read_some(buffer, std::forward<Handler>(handler)); });
  }
  template <typename Handler>
  void write_some(asio::const_buffer buffer, Handler&& handler) {
    with_stream(
        [&](auto& stream) { stream.async_write_some(buffer, std::forward<Handler>(handler)); });
  }
  // Tells the peer that nothing more will come.
  template <typename Handler>
  void finish(Handler&& handler) {
    if (tls_) {
      tls_->async_shutdown(std::forward<Handler>(handler));
    } else {
      ErrorCode ignored;
      socket_.shutdown(Tcp::socket::shutdown_send, ignored);
    }
  }
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  template <typename Work>
  void with_stream(Work work) {
    tls_ ? work(*tls_) : work(socket_);
  }

  Tcp::socket socket_;
  std::optional<asio::ssl::stream<Tcp::socket&>> tls_;
};

}  // namespace limpid
