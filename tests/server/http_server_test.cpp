#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "limpid/error.hpp"
#include "server/http.h"
#include "server/raw_client.h"

namespace limpid::testing {
namespace {

using std::chrono::milliseconds;

// GET and POST /echo answer with what came; /hold keeps the reply for the test.
class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    options.log = [this](const HttpLogEntry& entry) {
      const std::lock_guard lock(mutex_);
      log_.push_back(entry);
    };
    options.port = 0;  // one that is free
    server_ = std::make_unique<HttpServer>(
        std::move(options), [this](const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
          if (request.path == "/throw") throw std::runtime_error("secret");
          if (request.path == "/forget") return;
          if (request.path == "/hold") {
            const std::lock_guard lock(mutex_);
            held_ = std::move(reply);
            return;
          }
          reply->send({200, "text/plain",
                       fmt::format("{} {} {} [{}] {}", request.method, request.path, request.query,
                                   request.body, request.header("x-word"))});
        });
  }
  uint16_t port() { return server_->port(); }
  // The reply to a request for /hold.
  std::shared_ptr<HttpReply> held() {
    std::shared_ptr<HttpReply> reply;
    EXPECT_TRUE(soon([&] {
      const std::lock_guard lock(mutex_);
      reply = std::move(held_);
      return reply != nullptr;
    }));
    return reply;
  }
  // What the server sends to a new client that sends `request`, until it closes.
  std::string answer_to(std::string_view request) {
    RawClient client(port());
    client.send(request);
    return client.read_to_end();
  }
  bool is_logged(int status) {
    const std::lock_guard lock(mutex_);
    for (const HttpLogEntry& entry : log_) {
      if (entry.status == status) return true;
    }
    return false;
  }

  std::mutex mutex_;
  std::shared_ptr<HttpReply> held_;
  std::vector<HttpLogEntry> log_;
  std::unique_ptr<HttpServer> server_;
};

constexpr std::string_view kHold = "GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n";

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(HttpServerTest, TakesARequestApart) {
  start();
  const std::string answer = answer_to(
      "POST /echo%20me?a=1 HTTP/1.1\r\nHost: localhost:1\r\nX-Word: yes\r\n"
      "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(has(answer, "Connection: close\r\n"));
  EXPECT_TRUE(has(answer, "Content-Length: 29\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\nPOST /echo me a=1 [hello] yes")) << answer;
}

TEST_F(HttpServerTest, JoinsChunksAndIgnoresTrailers) {
  start();
  RawClient client(port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
      "Connection: close\r\n\r\n3;a=b\r\nabc\r\n");
  std::this_thread::sleep_for(milliseconds(20));
  for (const char byte : std::string_view("A\r\n0123456789\r\n0\r\nX-Word: trailer\r\n\r\n"))
    client.send({&byte, 1});
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.ends_with("POST /echo  [abc0123456789] ")) << answer;
}

TEST_F(HttpServerTest, KeepsTheConnection) {
  start();
  RawClient client(port());
  for (int i = 0; i < 50; ++i) {
    client.send(fmt::format("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", i));
    EXPECT_TRUE(has(client.read_until("[]"), fmt::format("GET /{} ", i)));
  }
}

TEST_F(HttpServerTest, AnswersHttp10AndHead) {
  start();
  EXPECT_TRUE(has(answer_to("GET /echo HTTP/1.0\r\nHost: localhost\r\n\r\n"), "GET /echo"));
  EXPECT_TRUE(has(answer_to("GET /echo HTTP/1.0\r\n\r\n"), "GET /echo"));
  for (const char* named :
       {"GET http://evil.example/echo HTTP/1.0\r\n\r\n", "GET /echo HTTP/1.0\r\nHost:\r\n\r\n",
        "GET /echo HTTP/1.0\r\nOrigin: http://evil.example\r\n\r\n"})
    EXPECT_TRUE(answer_to(named).starts_with("HTTP/1.1 403 ")) << named;
  const std::string head =
      answer_to("HEAD /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(head, "Content-Length: 15\r\n")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, AsksForABodyThatWaits) {
  start();
  RawClient client(port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_TRUE(client.read_to_end().ends_with("POST /echo  [ok] "));
  RawClient old(port());
  old.send(
      "POST /echo HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(old.read_until("\r\n\r\n", std::chrono::milliseconds(200)), "");
  old.send("ok");
  EXPECT_TRUE(old.read_to_end().starts_with("HTTP/1.1 200 "));
}

// What a program might send by mistake, and what an attacker sends so that a proxy and this server
// disagree about where a request ends.
TEST_F(HttpServerTest, RefusesAmbiguousAndMalformedRequests) {
  start();
  const std::vector<std::pair<std::string, int>> cases = {
      {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {"Content-Length: -1\r\n\r\n", 400},
      {"Content-Length: +3\r\n\r\nabc", 400},
      {"Content-Length: 3, 3\r\n\r\nabc", 400},
      {"Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {"Content-Length : 3\r\n\r\nabc", 400},
      {"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: \x0b"
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n", 400},
      {"X-A: one\r\n two\r\n\r\n", 400},
      {"X-A: one\n\r\n\r\n", 400},
      {"X-A: one\rX-B: two\r\n\r\n", 400},
      {"no colon\r\n\r\n", 400},
      {": no name\r\n\r\n", 400},
      {"X-A: a\x01\r\n\r\n", 400},
      {"Host: localhost\r\n\r\n", 400},
      {"Expect: a miracle\r\n\r\n", 417},
      {"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415},
  };
  for (const auto& [rest, status] : cases) {
    const std::string answer = answer_to("POST /echo HTTP/1.1\r\nHost: localhost\r\n" + rest);
    EXPECT_TRUE(answer.starts_with(fmt::format("HTTP/1.1 {} ", status))) << rest << answer;
    EXPECT_FALSE(has(answer, "POST /echo")) << rest;
  }
}

TEST_F(HttpServerTest, RefusesBadRequestLines) {
  start();
  const std::vector<std::string> cases = {
      "GET http://user@localhost/echo HTTP/1.1",
      "GET localhost:80 HTTP/1.1",
      "GET /%00 HTTP/1.1",
      "GET /%zz HTTP/1.1",
      "GET /a b HTTP/1.1",
      "GET  /echo HTTP/1.1",
      "GET /echo HTTP/2.0",
      "GET /echo",
      "G@T /echo HTTP/1.1",
      "\x16\x03\x01",  // TLS where none is spoken
  };
  for (const std::string& line : cases) {
    const std::string answer = answer_to(line + "\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << line << answer;
  }
  EXPECT_TRUE(answer_to("GET /echo HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, BoundsHeaderAndBody) {
  HttpOptions options;
  options.limits.header_bytes = 1024;
  options.limits.n_header_fields = 10;
  options.limits.body_bytes = 1000;
  start(options);
  const std::string begin = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
  const auto status_of = [&](const std::string& rest) {
    const std::string answer = answer_to(begin + rest);
    return answer.substr(0, std::string_view("HTTP/1.1 200").size());
  };
  EXPECT_EQ(status_of("X-A: " + std::string(2000, 'a')), "HTTP/1.1 431");
  std::string many;
  for (int i = 0; i < 12; ++i) many += fmt::format("X-{}: a\r\n", i);
  EXPECT_EQ(status_of(many + "\r\n"), "HTTP/1.1 431");
  EXPECT_EQ(status_of("Content-Length: 1001\r\n\r\n"), "HTTP/1.1 413");
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(chunked + "3E9\r\n" + std::string(1001, 'a') + "\r\n0\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status_of(chunked + "3;" + std::string(100'000, 'a')), "HTTP/1.1 400");
}

TEST_F(HttpServerTest, BoundsAllBodiesTogether) {
  HttpOptions options;
  options.limits.all_body_bytes = 1000;
  start(options);
  const std::string part = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 700\r\n\r\n" +
                           std::string(600, 'a');
  RawClient first(port());
  first.send(part);
  std::this_thread::sleep_for(milliseconds(50));  // until these bytes are read
  EXPECT_TRUE(answer_to(part).starts_with("HTTP/1.1 503 "));
  first.send(std::string(100, 'a'));
  EXPECT_TRUE(has(first.read_until("[aaa"), "200 OK"));
  RawClient second(port());
  second.send(part + std::string(100, 'a'));
  EXPECT_TRUE(has(second.read_until("[aaa"), "200 OK"));
}

TEST_F(HttpServerTest, TimesOutWhoSendsSlowly) {
  HttpOptions options;
  options.limits.header_time = options.limits.body_time = options.limits.idle_time =
      milliseconds(200);
  start(options);
  EXPECT_TRUE(answer_to("POST /echo HT").starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(answer_to("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nab")
                  .starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(answer_to(""), "");  // nothing came, so nothing is answered
}

TEST_F(HttpServerTest, StreamsInChunks) {
  start();
  RawClient client(port());
  client.send(kHold);
  const auto reply = held();
  reply->begin_stream({200, "text/event-stream"});
  EXPECT_TRUE(reply->write("one"));
  EXPECT_TRUE(has(client.read_until("one\r\n"), "Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(reply->write("twelve bytes"));
  reply->end();
  EXPECT_FALSE(reply->write("late"));
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "c\r\ntwelve bytes\r\n0\r\n\r\n");
  client.send("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(has(client.read_until("[]"), "GET /next"));
}

TEST_F(HttpServerTest, EndsAStreamOfHttp10WithTheConnection) {
  start();
  RawClient client(port());
  client.send("GET /hold HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  const auto reply = held();
  reply->begin_stream({200, "text/plain"});
  reply->write("one");
  reply->end();
  EXPECT_TRUE(client.read_to_end().ends_with("\r\n\r\none"));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, TellsWhenTheClientGoes) {
  start();
  for (const bool streams : {false, true}) {
    RawClient client(port());
    client.send(kHold);
    const auto reply = held();
    std::atomic<bool> is_gone = false;
    reply->on_gone([&] { is_gone = true; });
    if (streams) reply->begin_stream({200, "text/plain"});
    client.close();
    EXPECT_TRUE(soon([&] { return is_gone.load(); }));
    EXPECT_FALSE(reply->write("x"));
    std::atomic<bool> is_told_again = false;
    reply->on_gone([&] { is_told_again = true; });
    EXPECT_TRUE(is_told_again);
  }
  EXPECT_TRUE(soon([&] { return is_logged(499); }));
  EXPECT_TRUE(soon([&] { return server_->n_connections() == 0; }));
}

TEST_F(HttpServerTest, ForgetsTheCallbackAtTheEnd) {
  start();
  RawClient client(port());
  client.send(kHold);
  auto reply = held();
  const auto owned = std::make_shared<int>(0);
  std::atomic<bool> is_gone = false;
  reply->on_gone([&is_gone, owned, reply] { is_gone = true; });  // a cycle until the end
  EXPECT_EQ(owned.use_count(), 2);
  reply->send({200, "text/plain", "done"});
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_TRUE(has(client.read_until("done"), "200 OK"));
  client.close();
  EXPECT_TRUE(soon([&] { return server_->n_connections() == 0; }));
  EXPECT_FALSE(is_gone);
}

// A client that asks and does not read: what waits for it is bounded, and the writer is never held
// up. What the server writes at once is not the client's fault.
TEST_F(HttpServerTest, ClosesWhoReadsTooLittle) {
  HttpOptions options;
  options.limits.unsent_bytes = 100'000;
  options.limits.unsent_time = milliseconds(200);
  start(options);
  RawClient client(port(), 4096);
  client.send(kHold);
  const auto reply = held();
  std::atomic<bool> is_gone = false;
  reply->on_gone([&] { is_gone = true; });
  reply->begin_stream({200, "text/plain"});
  EXPECT_TRUE(reply->write(std::string(16 << 20, 'a')));
  EXPECT_TRUE(reply->write("b"));
  EXPECT_TRUE(soon([&] { return !reply->write("c"); }));
  EXPECT_TRUE(soon([&] { return is_gone.load(); }));
}

TEST_F(HttpServerTest, KeepsWhoReadsWhatComesAtOnce) {
  HttpOptions options;
  options.limits.unsent_bytes = 100'000;
  start(options);
  RawClient client(port());
  client.send("GET /hold HTTP/1.0\r\nHost: localhost\r\n\r\n");
  const auto reply = held();
  reply->begin_stream({200, "text/plain"});
  for (int i = 0; i < 160; ++i) EXPECT_TRUE(reply->write(std::string(100'000, 'a')));
  reply->end();
  EXPECT_GT(client.read_to_end().size(), 16'000'000U);
}

TEST_F(HttpServerTest, ClosesWhoReadsNothing) {
  HttpOptions options;
  options.limits.write_time = milliseconds(200);
  start(options);
  RawClient client(port(), 4096);
  client.send(kHold);
  held()->send({200, "text/plain", std::string(64 << 20, 'a')});
  EXPECT_TRUE(soon([&] { return server_->n_connections() == 0; }));
}

TEST_F(HttpServerTest, AnswersForHandlersThatFail) {
  start();
  const std::string rest = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  for (const char* path : {"/throw", "/forget"}) {
    const std::string answer = answer_to(std::string("GET ") + path + rest);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    EXPECT_FALSE(has(answer, "secret"));
  }
  RawClient client(port());
  client.send(kHold);
  held()->begin_stream({200, "text/plain"});  // dropped before its end
  EXPECT_FALSE(has(client.read_to_end(), "0\r\n\r\n"));
  EXPECT_TRUE(client.is_closed());
}

// The second request is not taken from bytes that came before the first answer.
TEST_F(HttpServerTest, DoesNotPipeline) {
  start();
  RawClient client(port());
  client.send(std::string(kHold) + "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
  held()->send({200, "text/plain", "first"});
  const std::string answers = client.read_to_end();
  EXPECT_TRUE(has(answers, "first"));
  EXPECT_TRUE(has(answers, "Connection: close\r\n"));
  EXPECT_FALSE(has(answers, "smuggled"));
}

TEST_F(HttpServerTest, ChecksHostAndOrigin) {
  HttpOptions options;
  options.allowed_hosts = {"model.example.org"};
  options.allowed_origins = {"https://page.example.org"};
  start(options);
  const auto answer = [&](const std::string& headers, const std::string& method = "GET") {
    return answer_to(method + " /echo HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n");
  };
  const std::string ok = "HTTP/1.1 200 ", no = "HTTP/1.1 403 ";
  for (const char* host :
       {"localhost", "LocalHost:8080", "127.0.0.1:1", "[::1]:8080", "model.example.org"})
    EXPECT_TRUE(answer(fmt::format("Host: {}\r\n", host)).starts_with(ok)) << host;
  for (const char* host : {"evil.example.org", "127.evil.example.org", "localhost.evil", ""})
    EXPECT_TRUE(answer(fmt::format("Host: {}\r\n", host)).starts_with(no)) << host;
  const std::string host = "Host: localhost:8080\r\n";
  EXPECT_TRUE(answer(host + "Origin: http://localhost:8080\r\n").starts_with(ok));
  EXPECT_TRUE(answer(host + "Origin: http://localhost:8081\r\n").starts_with(no));
  EXPECT_TRUE(answer(host + "Origin: null\r\n").starts_with(no));
  EXPECT_TRUE(answer(host + "Origin: https://evil.example.org\r\n").starts_with(no));
  const std::string allowed = host + "Origin: https://page.example.org\r\n";
  EXPECT_TRUE(has(answer(allowed), "Access-Control-Allow-Origin: https://page.example.org\r\n"));
  const std::string flight = answer(allowed + "Access-Control-Request-Method: POST\r\n", "OPTIONS");
  EXPECT_TRUE(flight.starts_with("HTTP/1.1 204 ")) << flight;
  EXPECT_TRUE(has(flight, "Access-Control-Allow-Headers: Authorization"));
  EXPECT_FALSE(has(flight, "Credentials"));
  const std::string asks =
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: anthropic-version,x-stainless-lang\r\n";
  EXPECT_TRUE(has(answer(allowed + asks, "OPTIONS"),
                  "Access-Control-Allow-Headers: anthropic-version,x-stainless-lang\r\n"));
  EXPECT_TRUE(
      answer(host + "Origin: https://evil.example.org\r\n" + asks, "OPTIONS").starts_with(no));
}

// A page of evil.example whose name resolves to this machine: DNS rebinding.
TEST_F(HttpServerTest, ChecksHostAndOriginOnAllAddresses) {
  HttpOptions options{.host = "0.0.0.0"};
  const auto status = [&](const std::string& host, const std::string& origin) {
    return answer_to(fmt::format("GET /echo HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n",
                                 host, origin.empty() ? "" : fmt::format("Origin: {}\r\n", origin)))
        .substr(9, 3);
  };
  start(options);
  EXPECT_EQ(status("nas.example:8080", ""), "200");  // not a page
  EXPECT_EQ(status("192.0.2.1:8080", "http://192.0.2.1:8080"), "200");
  EXPECT_EQ(status("evil.example", "http://evil.example"), "403");
  options.allowed_hosts = {"good.example"};
  start(options);
  EXPECT_EQ(status("good.example", "https://good.example"), "200");
  EXPECT_EQ(status("192.0.2.1:8080", "http://192.0.2.1:8080"), "200");
  EXPECT_EQ(status("evil.example", "http://evil.example"), "403");
  EXPECT_EQ(status("evil.example", ""), "403");
}

// The host of a target that is a whole URL counts, and not the header.
TEST_F(HttpServerTest, TakesAWholeUrlAsTheTarget) {
  start();
  const auto answer = [&](const std::string& target, const std::string& host) {
    return answer_to("GET " + target + " HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n");
  };
  const std::string here = "Host: localhost\r\n";
  const std::string ok = answer("http://localhost:8080/echo?a=1", here);
  EXPECT_TRUE(ok.starts_with("HTTP/1.1 200 ") && ok.ends_with("GET /echo a=1 [] ")) << ok;
  EXPECT_TRUE(
      answer("http://127.0.0.1/echo", "Host: evil.example\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(answer("http://evil.example/echo", here).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(answer("http://localhost/echo", "").starts_with("HTTP/1.1 400 "));
}

// Connections that say nothing do not keep others out.
TEST_F(HttpServerTest, BoundsConnections) {
  HttpOptions options;
  options.limits.n_connections = 8;
  start(options);
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<RawClient>(port()));
  EXPECT_TRUE(soon([&] { return server_->n_connections() <= 8; }));
  const std::string get = "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_TRUE(answer_to(get).starts_with("HTTP/1.1 200 "));
  silent.clear();

  std::vector<std::shared_ptr<HttpReply>> replies;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(std::make_unique<RawClient>(port()));
    silent.back()->send(kHold);
    replies.push_back(held());
  }
  EXPECT_TRUE(RawClient(port()).read_to_end().starts_with("HTTP/1.1 503 "));
  replies.front()->send({200, "text/plain", "done"});
  EXPECT_TRUE(has(silent.front()->read_until("done"), "200 OK"));
  EXPECT_TRUE(soon([&] { return answer_to(get).starts_with("HTTP/1.1 200 "); }));
}

TEST_F(HttpServerTest, DrainsWhenItStops) {
  start();
  RawClient idle(port()), client(port());
  client.send(kHold);
  const auto reply = held();
  std::thread stopping([this] { server_->stop(std::chrono::seconds(10)); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(has(answer_to("GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n"), "GET /late"));
  reply->send({200, "text/plain", "finished"});
  EXPECT_TRUE(client.read_to_end().ends_with("finished"));
  client.close();
  stopping.join();
}

TEST_F(HttpServerTest, StopsWaitingInTheEnd) {
  start();
  RawClient client(port());
  client.send(kHold);
  const auto reply = held();
  std::atomic<bool> is_gone = false;
  reply->on_gone([&] { is_gone = true; });
  server_->stop(milliseconds(100));
  EXPECT_TRUE(is_gone);
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n")) << answer;
  EXPECT_TRUE(has(answer, "the server is shutting down")) << answer;
  reply->send({200, "text/plain", "too late"});
}

// A stream gets what the handler ends it with; one that nobody ends breaks off.
TEST_F(HttpServerTest, CutsStreamsOffInTheEnd) {
  for (const bool has_error : {true, false}) {
    start();
    RawClient client(port());
    client.send(kHold);
    const auto reply = held();
    reply->begin_stream({200, "text/plain"});
    reply->write("begin");
    const std::weak_ptr<HttpReply> weak = reply;
    reply->on_gone([has_error, weak] {
      if (!has_error) return;
      const auto same = weak.lock();
      same->write("sorry");
      same->end();
    });
    std::thread stopping([this] { server_->stop(milliseconds(0)); });
    const std::string answer = client.read_to_end();
    EXPECT_TRUE(answer.ends_with(has_error ? "sorry\r\n0\r\n\r\n" : "begin\r\n")) << answer;
    stopping.join();
  }
}

TEST_F(HttpServerTest, NamesWhatIsWrongWithItsOptions) {
  start();
  const HttpHandler handler = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {};
  EXPECT_THROW(HttpServer({.host = "no such host"}, handler), ArgumentError);
  EXPECT_THROW(HttpServer({.port = port()}, handler), ResourceError);
  EXPECT_THROW(HttpServer({.tls_certificate = "x.pem"}, handler), ArgumentError);
  EXPECT_THROW(HttpServer({.tls_certificate = "x.pem", .tls_key = "y.pem"}, handler),
               ResourceError);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space
// While it lives, the process may have this much more address space than now.
class LittleAddressSpace {
 public:
  explicit LittleAddressSpace(rlim_t n_bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t n_pages = 0;
    std::ifstream("/proc/self/statm") >> n_pages;
    rlimit little = before_;
    little.rlim_cur = n_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + n_bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~LittleAddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  LittleAddressSpace(const LittleAddressSpace&) = delete;
  LittleAddressSpace& operator=(const LittleAddressSpace&) = delete;

 private:
  rlimit before_{};
};

// The stacks of some threads fit, those of all do not.
TEST_F(HttpServerTest, AThreadThatCannotBeStartedIsAnError) {
  const HttpHandler handler = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {};
  {
    const LittleAddressSpace little(40 << 20);
    EXPECT_THROW(HttpServer({.port = 0, .n_threads = 1000}, handler), ResourceError);
  }
  start();
  EXPECT_TRUE(has(answer_to("GET /echo HTTP/1.0\r\nHost: localhost\r\n\r\n"), "GET /echo"));
}
#endif

}  // namespace
}  // namespace limpid::testing
