#include "server/http_text.h"

#include <gtest/gtest.h>

#include "server/http_header_check.h"

namespace limpid::testing {
namespace {

using State = HttpHeaderCheck::State;

TEST(HttpHeaderCheck, FindsTheEndHoweverTheBytesArrive) {
  const std::string header = "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n";
  HttpHeaderCheck check(10);
  for (size_t n = 1; n < header.size(); ++n)
    EXPECT_EQ(check.look(header.substr(0, n)), State::kIncomplete);
  EXPECT_EQ(check.look(header + "body"), State::kComplete);
  EXPECT_EQ(check.n_bytes(), header.size());
}

TEST(HttpHeaderCheck, RefusesAtTheFirstWrongByte) {
  for (const char* header : {"\r\n", "\n", "GET /\n", "GET /\r\r", "GET /\x01", "GET /\r\n X",
                             "GET /\r\n:", "GET /\r\nA :", "GET /\r\nA\t:", "GET /\r\nA\r\n",
                             "GET /\r\nA: \x7f", "GET\t"})
    EXPECT_EQ(HttpHeaderCheck(10).look(header), State::kMalformed) << header;
  EXPECT_EQ(HttpHeaderCheck(1).look("GET /\r\nA: 1\r\nB: 2\r\n"), State::kTooManyFields);
}

TEST(HttpText, KnowsLoopbackAddresses) {
  for (const char* host : {"localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"::ffff:10.0.0.1", "127.example.org", "::ffff:localhost"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(HttpText, DecodesTargets) {
  EXPECT_EQ(percent_decoded("a%20b%C3%A9+"), "a b\xC3\xA9+");
  for (const char* wrong : {"%", "%1", "%zz", "%00", "%+1"}) EXPECT_FALSE(percent_decoded(wrong));
  HttpRequest request;
  EXPECT_TRUE(read_target("/a%2Fb?x=1?2", request));
  EXPECT_EQ(request.path, "/a/b");
  EXPECT_EQ(request.query, "x=1?2");
  for (const char* other :
       {"*", "localhost:80", "ftp://a/", "http://", "http:///a", "http://u@a/", "http://a#/b"})
    EXPECT_FALSE(read_target(other, request)) << other;
  EXPECT_FALSE(read_target("//%00", request));
  EXPECT_EQ(query_value("a=1&b=x+y%21&c", "b"), "x y!");
  EXPECT_EQ(query_value("a=1&b=2&c", "c"), "");
  EXPECT_EQ(query_value("aa=1", "a"), "");
}

// RFC 9112, section 3.2.2.
TEST(HttpText, AWholeUrlNamesItsHost) {
  HttpRequest request;
  request.headers = {{"host", "localhost"}, {"X", "y"}};
  EXPECT_TRUE(read_target("HTTP://evil.example:81/a%20b?c", request));
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.query, "c");
  EXPECT_EQ(request.header("Host"), "evil.example:81");
  EXPECT_EQ(request.header("X"), "y");
  for (const char* target : {"https://a.example", "https://a.example?c"}) {
    EXPECT_TRUE(read_target(target, request)) << target;
    EXPECT_EQ(request.path, "/");
    EXPECT_EQ(request.header("Host"), "a.example");
  }
}

TEST(HttpText, WritesNamesAsBrowsersDo) {
  for (const auto& [given, normal] :
       {std::pair("Model.Example.org/", "model.example.org"),
        std::pair("a.example:8080", "a.example:8080"), std::pair("[2001:DB8::1]", "2001:db8::1"),
        std::pair("2001:db8::1", "2001:db8::1"), std::pair("[2001:db8::1]:80", "[2001:db8::1]:80")})
    EXPECT_EQ(normal_host(given), normal) << given;
  for (const char* wrong : {"", "/", "https://a.example", "a.example/b", "a.example:", "a:b", "*",
                            "a b", ":80", "a.example//"})
    EXPECT_EQ(normal_host(wrong), std::nullopt) << wrong;
  for (const auto& [given, normal] :
       {std::pair("HTTPS://Page.Example/", "https://page.example"),
        std::pair("https://a.example:443", "https://a.example"),
        std::pair("http://a.example:80/", "http://a.example"),
        std::pair("http://a.example:443", "http://a.example:443"),
        std::pair("http://[::1]:80", "http://[::1]"),
        std::pair("app://obsidian.md", "app://obsidian.md"), std::pair("null", "null")})
    EXPECT_EQ(normal_origin(given), normal) << given;
  for (const char* wrong : {"", "*", "a.example", "a.example:443", "https://", "https:///",
                            "https://a.example/chat", "https://a.example//", "://a.example",
                            "https://*.example", "https://u@a.example", "https://::1"})
    EXPECT_EQ(normal_origin(wrong), std::nullopt) << wrong;
}

TEST(HttpText, ComparesHosts) {
  const auto allows = [](const char* listens_on, std::vector<std::string> names, const char* host) {
    return is_host_allowed(host, {.host = listens_on, .allowed_hosts = std::move(names)});
  };
  const std::vector<std::string> names = {"name.example", "other.example:81"};
  for (const char* listens_on : {"::1", "0.0.0.0"}) {
    for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:80", "[::1]:5",
                             "name.example:80", "other.example:81"})
      EXPECT_TRUE(allows(listens_on, names, host)) << host;
    for (const char* host : {"", "example", "127.0.0.1.example", "localhost.example", "a.localhost",
                             "other.example:82"})
      EXPECT_FALSE(allows(listens_on, names, host)) << host;
  }
  for (const char* address : {"192.0.2.1:80", "[::2]:80"}) {
    EXPECT_FALSE(allows("127.0.0.1", names, address));
    EXPECT_TRUE(allows("0.0.0.0", names, address));
  }
  EXPECT_TRUE(allows("0.0.0.0", {}, "anything"));
  EXPECT_FALSE(allows("127.0.0.1,::1", {}, "anything"));
  EXPECT_TRUE(allows("127.0.0.1,192.0.2.1", {}, "anything"));
}

TEST(HttpText, ComparesOrigins) {
  HttpOptions options{.host = "0.0.0.0"};
  const auto allows = [&](const std::string& scheme, const std::string& host) {
    return is_origin_allowed(scheme + "://" + host, host, options);
  };
  EXPECT_TRUE(is_origin_allowed("", "name.example", options));
  for (const char* host : {"localhost:80", "192.0.2.1", "192.0.2.1:80", "[::2]:80"}) {
    EXPECT_TRUE(allows("http", host)) << host;
    EXPECT_FALSE(allows("https", host)) << host;
  }
  for (const char* host : {"evil.example", "192.0.2.1.example", "1.example:80", "name.example:80"})
    EXPECT_FALSE(allows("http", host)) << host;
  options.allowed_hosts = {"name.example"};
  for (const char* scheme : {"http", "https"})
    EXPECT_TRUE(allows(scheme, "name.example:80")) << scheme;  // a proxy may have the certificate
  EXPECT_FALSE(is_origin_allowed("http://evil.example", "name.example", options));
  EXPECT_FALSE(is_origin_allowed("null", "name.example", options));
  options.allowed_origins = {"https://page.example"};
  EXPECT_TRUE(is_origin_allowed("https://page.example", "name.example", options));
  EXPECT_FALSE(is_origin_allowed("http://page.example", "name.example", options));
  options.tls_key = "key.pem";
  EXPECT_TRUE(allows("https", "192.0.2.1"));
  EXPECT_FALSE(allows("http", "192.0.2.1"));
}

TEST(HttpText, TellsBrowsersWhichHeadersMayBeSent) {
  HttpRequest request;
  const auto allowed = [&] { return preflight_answer(request).headers.at(1).second; };
  EXPECT_EQ(allowed(), "Authorization, Content-Type, X-Api-Key");
  request.headers = {{"access-control-request-headers", "x-stainless-lang"}, {"A", "b"}};
  EXPECT_EQ(allowed(), "x-stainless-lang");
  EXPECT_EQ(preflight_answer(request).status, 204);
}

TEST(HttpText, WritesHeaders) {
  EXPECT_EQ(http_date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  const std::string text = header_text({404, "text/plain", "abc", {{"X-A", "one\r\nX-B: two"}}},
                                       BodyLength::kKnown, false);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_NE(text.find("\r\nContent-Length: 3\r\n"), std::string::npos);
  EXPECT_NE(text.find("\r\nX-A: one  X-B: two\r\n"), std::string::npos);  // no second header
  EXPECT_TRUE(text.ends_with("\r\nConnection: close\r\n\r\n"));
  for (const int status : {204, 304}) {
    const std::string empty = header_text({status, ""}, BodyLength::kKnown, true);
    EXPECT_EQ(empty.find("Content-Length"), std::string::npos) << status;
  }
  EXPECT_EQ(chunk_text("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

}  // namespace
}  // namespace limpid::testing
