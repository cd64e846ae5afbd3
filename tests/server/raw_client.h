// A TCP client that sends exactly the bytes it is told to.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace limpid::testing {

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* pointer = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket_, pointer, sizeof address), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // False when the server has closed the connection.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Reads until `text` has come, and gives everything so far. Stops when the server closes the
  // connection or nothing comes for `patience`.
  std::string read_until(std::string_view text,
                         std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    std::string all;
    while (all.find(text) == std::string::npos && read_more(all, patience)) {
    }
    return all;
  }
  std::string read_to_end(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    std::string all;
    while (read_more(all, patience)) {
    }
    return all;
  }
  // Whether the server has closed the connection, at the end of what it sent.
  bool is_closed() const { return closed_; }

 private:
  bool read_more(std::string& all, std::chrono::milliseconds patience) {
    pollfd entry{socket_, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(patience.count())) <= 0) return false;
    char buffer[4096];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    closed_ = n <= 0;
    if (n > 0) all.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  int socket_;
  bool closed_ = false;
};

// Whether `condition` becomes true within ten seconds.
template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace limpid::testing
