#include "server/json_body.h"

#include <gtest/gtest.h>

namespace limpid::testing {
namespace {

// The field that an ApiError of `work` blames; "no error" where there is none.
template <typename Work>
std::string blamed(Work work) {
  try {
    work();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "no error";
}

TEST(JsonBody, ReadsFields) {
  const Json json =
      parse_body(R"({"a": 5, "b": 2.5, "c": [1.0, "x"], "d": {"e": true}, "n": null})");
  const JsonField body(json, "");
  EXPECT_EQ(body.find("a")->integer(0, 10), 5);
  EXPECT_EQ(body.find("b")->number(0, 10), 2.5);
  EXPECT_EQ(body.find("c")->elements()[0].integer(0, 10), 1);
  EXPECT_EQ(body.find("c")->elements()[1].string(), "x");
  EXPECT_TRUE(body.find("d")->find("e")->boolean());
  EXPECT_FALSE(body.find("n"));
  EXPECT_FALSE(body.find("z"));
}

// Where a double lies between two integers, or is rounded to one beyond the limit, the integer as
// it was written counts.
TEST(JsonBody, ReadsTheLargestIntegers) {
  const Json json = parse_body(
      R"({"a": [9223372036854775807, -9223372036854775808, 9007199254740993],
          "b": [9223372036854775808, 18446744073709551615, 9223372036854775808.0]})");
  const JsonField body(json, "");
  const auto read = [](const JsonField& field) { return field.integer(INT64_MIN, INT64_MAX); };
  const std::vector<JsonField> good = body.find("a")->elements();
  EXPECT_EQ(read(good[0]), INT64_MAX);
  EXPECT_EQ(read(good[1]), INT64_MIN);
  EXPECT_EQ(read(good[2]), 9007199254740993);
  for (const JsonField& large : body.find("b")->elements())
    EXPECT_EQ(blamed([&] { read(large); }), large.name());
}

TEST(JsonBody, NamesTheFieldThatIsWrong) {
  const Json json = parse_body(
      R"({"a": 1.5, "b": "x", "c": [{"d": 1}], "big": 1e300, "x.a": [], "huge": 9223372036854775807})");
  const JsonField body(json, "");
  const auto field = [&](const char* name) { return *body.find(name); };
  EXPECT_EQ(blamed([&] { field("a").integer(0, 10); }), "a");
  EXPECT_EQ(blamed([&] { field("a").number(2, 10); }), "a");
  EXPECT_EQ(blamed([&] { field("b").number(0, 1); }), "b");
  EXPECT_EQ(blamed([&] { field("b").integer(0, 1); }), "b");
  EXPECT_EQ(blamed([&] { field("b").boolean(); }), "b");
  EXPECT_EQ(blamed([&] { field("b").elements(); }), "b");
  EXPECT_EQ(blamed([&] { field("big").integer(INT64_MIN, INT64_MAX); }), "big");
  EXPECT_EQ(blamed([&] { field("huge").integer(0, 10); }), "huge");
  EXPECT_EQ(blamed([&] { field("c").elements()[0].find("d")->string(); }), "c[0].d");
  EXPECT_EQ(blamed([&] { (void)field("c").find("d"); }), "c");
  EXPECT_EQ(field("c").elements()[0].find("d")->key(), "d");
  EXPECT_EQ(field("x.a").key(), "x.a");  // a dot does not make it a field of x
}

TEST(JsonBody, SaysWhatAValueMustBe) {
  const Json json = parse_body(R"({"n": 65, "pooling": "x"})");
  const auto problem = [](auto work) -> std::string {
    try {
      work();
    } catch (const ApiError& error) {
      return error.what();
    }
    return "";
  };
  const JsonField body(json, "");
  EXPECT_EQ(problem([&] { body.find("n")->integer(1, 64); }), "n must be between 1 and 64, not 65");
  EXPECT_EQ(problem([&] { body.find("pooling")->must_be("mean or last"); }),
            "pooling must be mean or last, not 'x'");
}

TEST(JsonBody, KnowsDurations) {
  const Json json = parse_body(
      R"({"right": [5, -1, 0.5, "5m", "-1", "1h30m", "1.5h", "10ms"],
          "zero": [0, 0.0, "0", "0s", "0h0m"],
          "wrong": ["", "soon", "5 m", "m", "5mm", "5d", "-", true, {}, []]})");
  const JsonField body(json, "");
  for (const JsonField& time : body.find("right")->elements())
    EXPECT_FALSE(is_zero_duration(time)) << time.json();
  for (const JsonField& time : body.find("zero")->elements())
    EXPECT_TRUE(is_zero_duration(time)) << time.json();
  for (const JsonField& time : body.find("wrong")->elements())
    EXPECT_EQ(blamed([&] { is_zero_duration(time); }), time.name()) << time.json();
}

TEST(JsonBody, ANameOfAModelIsAString) {
  EXPECT_EQ(blamed([] { JsonBody(R"({"model": 5})"); }), "model");
  EXPECT_EQ(blamed([] { JsonBody(R"({"model": null})"); }), "no error");
}

TEST(JsonBody, KnowsEmptyValues) {
  const Json json = parse_body(
      R"({"empty": [null, false, 0, 0.0, "", [], {}, {"a": null}], "full": [true, 1, -0.5, "0", [0], {"a": 0}]})");
  const JsonField body(json, "");
  for (const JsonField& value : body.find("empty")->elements())
    EXPECT_TRUE(value.is_empty()) << value.json();
  for (const JsonField& value : body.find("full")->elements())
    EXPECT_FALSE(value.is_empty()) << value.json();
}

TEST(JsonBody, SaysThatABodyIsEmpty) {
  for (const char* text : {"", " \r\n\t"}) {
    try {
      parse_body(text);
      FAIL() << "no error";
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_NE(std::string(error.what()).find("empty"), std::string::npos) << error.what();
    }
  }
}

TEST(JsonBody, RefusesWhatIsNoObject) {
  const std::string deep = "{\"a\": " + std::string(100'000, '[');
  for (const std::string& text : std::initializer_list<std::string>{
           "", "null", "[]", "1", "{", "{\"a\": 1e999}", "{\"a\": \"\xff\"}",
           "{\"a\": \"\\ud800\"}", "{} {}", "{\"a\": NaN}", deep})
    EXPECT_EQ(blamed([&] { parse_body(text); }), "") << text.substr(0, 20);
}

}  // namespace
}  // namespace limpid::testing
