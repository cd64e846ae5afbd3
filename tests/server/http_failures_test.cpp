// What a thread of the server throws ends one connection at most.
#include <atomic>
#include <mutex>
#include <new>

#include "server/http.h"
#include "server/raw_client.h"

namespace limpid::testing {
namespace {

class HttpFailuresTest : public ::testing::Test {
 protected:
  // /unlogged: the log throws. /hold: the reply is kept for the test.
  void start(HttpOptions options = {}) {
    options.port = 0;
    options.log = [](const HttpLogEntry& entry) {
      if (entry.path == "/unlogged") throw std::bad_alloc();
    };
    options.log_failure = [this](std::string_view, std::string_view reason) {
      if (!reason.empty()) ++n_failures_;
    };
    server_ = std::make_unique<HttpServer>(
        std::move(options), [this](const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
          if (request.path == "/throw") throw std::bad_alloc();
          if (request.path == "/odd") throw 1;
          if (request.path != "/hold") return reply->send({200, "text/plain", "fine"});
          const std::lock_guard lock(mutex_);
          held_ = std::move(reply);
        });
  }
  std::string answer_to(std::string_view request) {
    RawClient client(server_->port());
    client.send(request);
    return client.read_to_end();
  }
  std::string answer_at(const std::string& path) {
    return answer_to("GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n");
  }
  void expect_to_go_on(int n_failures) {
    EXPECT_TRUE(soon([&] { return n_failures_ == n_failures; })) << n_failures_;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(answer_at("/").ends_with("fine"));
    EXPECT_TRUE(soon([&] { return server_->n_connections() == 0; }));
  }

  std::atomic<int> n_failures_ = 0;
  std::mutex mutex_;
  std::shared_ptr<HttpReply> held_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpFailuresTest, TheLogOfAnAnswer) {
  start();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(answer_at("/unlogged").ends_with("fine"));
  expect_to_go_on(3);
}

TEST_F(HttpFailuresTest, AHandler) {
  start();
  EXPECT_TRUE(answer_at("/throw").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(answer_at("/odd").starts_with("HTTP/1.1 500 "));  // there is no reason to log
  expect_to_go_on(1);
}

TEST_F(HttpFailuresTest, WhatIsCalledWhenTheClientGoes) {
  start();
  RawClient client(server_->port());
  client.send("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    return held_ != nullptr;
  }));
  held_->on_gone([] { throw std::bad_alloc(); });
  client.close();
  expect_to_go_on(1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the program
TEST_F(HttpFailuresTest, ABodyThatMemoryDoesNotSufficeFor) {
  HttpOptions options;
  options.limits.body_bytes = size_t{1} << 62U;
  start(options);
  const std::string answer = answer_to(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000000000000000\r\n\r\na");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  expect_to_go_on(1);
}
#endif

}  // namespace
}  // namespace limpid::testing
