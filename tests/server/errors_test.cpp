#include "server/errors.h"

#include <gtest/gtest.h>

#include <new>

#include "server/answer.h"
#include "server/generation_service.h"

namespace limpid::testing {
namespace {

template <typename Error>
ApiError told(const Error& error) {
  return as_api_error(std::make_exception_ptr(error));
}

TEST(ServerErrors, EachKindHasItsStatus) {
  EXPECT_EQ(told(ArgumentError("x")).status(), 400);
  EXPECT_EQ(told(ContextOverflowError(300, 256)).status(), 400);
  EXPECT_EQ(told(QueueFullError("x")).status(), 429);
  EXPECT_EQ(told(UnsupportedError("x")).status(), 501);
  EXPECT_EQ(told(std::bad_alloc()).status(), 503);
  EXPECT_EQ(told(std::runtime_error("x")).status(), 500);
}

// Their messages may name files or addresses. They are for the log.
TEST(ServerErrors, MessagesAboutTheServerAreNotTold) {
  for (const ApiError& error :
       {told(ResourceError("/home/secret")), told(std::runtime_error("/home/secret")),
        told(Error("/home/secret"))}) {
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    EXPECT_EQ(error.reason, "/home/secret");
  }
  EXPECT_EQ(told(ArgumentError("x")).reason, "");
}

TEST(ServerErrors, ClientsSeeNoPartsOfTheProgram) {
  EXPECT_STREQ(told(ArgumentError("[sampler] no token is left")).what(), "no token is left");
  EXPECT_STREQ(told(UnsupportedError("[gguf writer] x: [y] z")).what(), "x: [y] z");
  for (const char* other : {"x", "[1] x", "[INST] x", "[] x", "[x", "[x]y", "the [x] y"})
    EXPECT_STREQ(told(ArgumentError(other)).what(), other);
}

TEST(ServerErrors, EachApiHasItsShape) {
  const ApiError error(400, "n is 0", "n");
  EXPECT_EQ(
      error_json(ApiStyle::kOpenAi, error).dump(),
      R"({"error":{"message":"n is 0","type":"invalid_request_error","param":"n","code":400}})");
  EXPECT_EQ(error_json(ApiStyle::kAnthropic, error).dump(),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"n is 0"}})");
  EXPECT_EQ(error_json(ApiStyle::kOllama, error).dump(), R"({"error":"n is 0"})");
  const Json overflow =
      error_json(ApiStyle::kOpenAi, told(ContextOverflowError(300, 256)))["error"];
  EXPECT_EQ(overflow["type"], "exceed_context_size_error");
  EXPECT_EQ(overflow["n_prompt_tokens"], 300);
  EXPECT_EQ(overflow["n_ctx"], 256);
  EXPECT_TRUE(overflow["param"].is_null());
}

TEST(ServerErrors, BusyServersSayWhenToComeBack) {
  const HttpAnswer answer = error_answer(ApiStyle::kOpenAi, told(QueueFullError("x")));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers, (HttpHeaders{{"Retry-After", "1"}}));
}

TEST(ServerErrors, AnErrorMayHaveHeadersOfItsOwn) {
  ApiError error(405, "x");
  error.headers.emplace_back("Allow", "GET");
  EXPECT_EQ(error_answer(ApiStyle::kOllama, error).headers, (HttpHeaders{{"Allow", "GET"}}));
}

TEST(ServerErrors, EventsAreOneLine) {
  EXPECT_EQ(sse_event({{"a", "b\nc"}}), "data: {\"a\":\"b\\nc\"}\n\n");
  EXPECT_EQ(sse_event("e", {{"a", "\xff"}}),
            "event: e\ndata: {\"type\":\"e\",\"a\":\"\xEF\xBF\xBD\"}\n\n");
}

}  // namespace
}  // namespace limpid::testing
