#include "server/web_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "data_paths.h"

namespace limpid {
namespace {

HttpRequest get(const std::string& path, HttpHeaders headers = {}) {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.headers = std::move(headers);
  return request;
}

std::string header(const HttpAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(WebFiles, AreThoseOfTheFolderByteForByte) {
  const std::filesystem::path folder = testing::source_path("src/server/web");
  size_t n_files = 0;
  std::set<std::string> etags;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++n_files;
    const std::string name = "/" + entry.path().filename().string();
    const auto answer = web_answer(get(name));
    ASSERT_TRUE(answer) << name;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(answer->body, bytes) << name;
    etags.insert(header(*answer, "ETag"));
  }
  EXPECT_EQ(web_files().size(), n_files);
  EXPECT_EQ(etags.size(), n_files);
}

TEST(WebFiles, TheIndexIsAtTheRoot) {
  const auto answer = web_answer(get("/"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(answer->body, web_answer(get("/index.html"))->body);
  EXPECT_TRUE(header(*answer, "Content-Security-Policy").starts_with("default-src 'self';"));
}

TEST(WebFiles, ABrowserThatHasAFileGetsNoBytes) {
  const std::string etag = header(*web_answer(get("/app.js")), "ETag");
  for (const std::string& tags : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    const auto answer = web_answer(get("/app.js", {{"If-None-Match", tags}}));
    EXPECT_EQ(answer->status, 304) << tags;
    EXPECT_TRUE(answer->body.empty());
    EXPECT_EQ(header(*answer, "ETag"), etag);
  }
  EXPECT_EQ(web_answer(get("/app.js", {{"If-None-Match", "\"other\""}}))->status, 200);
  EXPECT_EQ(web_answer(get("/style.css", {{"If-None-Match", etag}}))->status, 200);
}

TEST(WebFiles, NothingElseIsServed) {
  for (const char* path : {"", "/web", "/../web_files.h", "//index.html", "/index.html/", "/v1"}) {
    EXPECT_FALSE(web_answer(get(path))) << path;
  }
  HttpRequest post = get("/");
  post.method = "POST";
  EXPECT_FALSE(web_answer(post));
}

}  // namespace
}  // namespace limpid
