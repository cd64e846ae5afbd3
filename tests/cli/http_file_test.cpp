// Transfers over libcurl: what a callback throws reaches the caller.
#include "cli/http_file.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <thread>

#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

// Answers one request with `body`.
class Server {
 public:
  explicit Server(const std::string& body) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, raw, n) | listen(listener_, 1) | getsockname(listener_, raw, &n), 0);
    port_ = ntohs(address.sin_port);
    setenv("no_proxy", "127.0.0.1", 1);
    thread_ = std::thread([this, answer = "HTTP/1.1 200 OK\r\nContent-Length: " +
                                          std::to_string(body.size()) + "\r\n\r\n" + body] {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;  // a client that never came
      char request[4096];
      if (recv(client, request, sizeof request, 0) > 0)
        send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      close(client);
    });
  }
  ~Server() {
    shutdown(listener_, SHUT_RDWR);  // ends an accept() that still waits
    thread_.join();
    close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  HttpRequest request() const { return {"http://127.0.0.1:" + std::to_string(port_) + "/x", {}}; }

 private:
  int listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(HttpGet, GivesTheBody) {
  const Server server("hello");
  EXPECT_EQ(http_get(server.request(), 5), "hello");
}

TEST(HttpGet, ALongerBodyIsRefused) {
  const Server server("hello");
  expect_error<ResourceError>(
      [&] { http_get(server.request(), 4); },
      {"cannot fetch " + server.request().url + ": the answer is longer than 4 bytes"});
}

TEST(HttpFetch, WhatProgressThrowsReachesTheCaller) {
  const Server server("hello");
  const TempFolder folder;
  const HttpProgress no_memory = [](uint64_t) -> bool { throw std::bad_alloc(); };
  EXPECT_THROW(http_fetch(server.request(), folder.path("x"), 5, no_memory), std::bad_alloc);
}

TEST(HttpFetch, MoreThanWasAnnouncedIsRefused) {
  const Server server("hello");
  const TempFolder folder;
  const HttpProgress go_on = [](uint64_t) { return true; };
  EXPECT_THROW(http_fetch(server.request(), folder.path("x"), 4, go_on), ResourceError);
}

}  // namespace
}  // namespace limpid::cli
