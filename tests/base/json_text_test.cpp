#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "limpid/error.hpp"

namespace limpid {
namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string problem_of(const std::string& text) {
  try {
    parse_json(text, "messages.json");
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "none";
}

TEST(JsonText, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": [1, "two"], "a": null})", "x").dump(),
            R"({"b":[1,"two"],"a":null})");
}

TEST(JsonText, LimitsDepth) {
  constexpr const char* kTooDeep = "messages.json: this JSON is nested deeper than 128 levels";
  EXPECT_EQ(problem_of(nested(kMaxJsonDepth)), "none");
  EXPECT_EQ(problem_of(nested(kMaxJsonDepth + 1)), kTooDeep);
  EXPECT_EQ(problem_of(nested(1'000'000)), kTooDeep);
  std::string objects;
  for (int i = 0; i < 60'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(problem_of(objects), kTooDeep);
}

TEST(JsonText, RefusesTwoMembersOfOneName) {
  EXPECT_EQ(problem_of(R"({"a": {"b": 1}, "c": [{"b": 2, "a": 1}]})"), "none");
  EXPECT_EQ(problem_of(R"([{"a": 1, "b": 2, "\u0061": 3}])"),
            "messages.json: an object of this JSON has the name 'a' twice");
}

// nlohmann's builder would compare 10^10 names.
TEST(JsonText, ReadsManyMembers) {
  std::string text = "{\"k0\": 0";
  for (int i = 1; i < 200'000; ++i) text += ",\"k" + std::to_string(i) + "\": " + std::to_string(i);
  const auto document = parse_json(text + "}", "x");
  EXPECT_EQ(document.size(), 200'000U);
  EXPECT_EQ(document["k199999"], 199'999);
}

TEST(JsonText, BracketsInStringsAreText) {
  const std::string text =
      "[\"\\\"" + std::string(1000, '[') + "\\\\\", \"" + std::string(1000, '{') + "\"]";
  EXPECT_EQ(parse_json(text, "x")[0].get<std::string>(), "\"" + std::string(1000, '[') + "\\");
}

TEST(JsonText, SaysWhereATextIsNotJson) {
  EXPECT_EQ(problem_of(""), "messages.json: byte 1: this is not JSON");
  EXPECT_EQ(problem_of("[1, x]"), "messages.json: byte 5: this is not JSON");
  EXPECT_EQ(problem_of("]]]" + std::string(100, '[')), "messages.json: byte 1: this is not JSON");
  EXPECT_EQ(problem_of("[1e999]"), "messages.json: a number in this JSON does not fit a double");
}

}  // namespace
}  // namespace limpid
