#include "base/json_file.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"

namespace limpid {
namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonFile, ReadsPlacesThatKnowWhereTheyAre) {
  const JsonFile file("x.json", R"({"a": {"b": [1, "two", null, true]}, "n": null})");
  const auto items = file.root()["a"]["b"].elements();
  EXPECT_EQ(items.at(0).integer(), 1);
  EXPECT_EQ(items.at(1).string(), "two");
  EXPECT_TRUE(items.at(2).is_null());
  EXPECT_TRUE(items.at(3).boolean());
  EXPECT_FALSE(file.root().find("n").has_value());
  EXPECT_FALSE(file.root().find("missing").has_value());
  EXPECT_EQ(file.root().string("missing", "other"), "other");
  try {
    static_cast<void>(items.at(1).integer());
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), "x.json");
    EXPECT_EQ(error.field(), "a.b[1]");
  }
}

// transformers writes 10^30 as the length of a tokenizer without a limit.
TEST(JsonFile, ReadsIntegersOfMoreThan64BitsAsFloats) {
  const JsonFile file("x.json", R"({"length": 1000000000000000019884624838656, "least": [
      -9223372036854775808, -9223372036854775809], "most": 18446744073709551615,
      "text": "\"99999999999999999999\" \\", "short": -1, "exact": 1e30})");
  const JsonPlace root = file.root();
  EXPECT_EQ(root["length"].element().get_double().value_unsafe(), 1e30);
  EXPECT_EQ(root["least"].elements().at(0).integer(), INT64_MIN);
  EXPECT_EQ(root["least"].elements().at(1).element().get_double().value_unsafe(),
            -9223372036854775808.0);
  EXPECT_EQ(root["most"].element().get_uint64().value_unsafe(), UINT64_MAX);
  EXPECT_EQ(root["text"].string(), R"("99999999999999999999" \)");
  EXPECT_EQ(root["short"].integer(), -1);
  EXPECT_EQ(root["exact"].element().get_double().value_unsafe(), 1e30);
  EXPECT_THROW(static_cast<void>(root["length"].integer()), FormatError);
  EXPECT_THROW(JsonFile("x.json", "[99999999999999999999, 01]"), FormatError);
}

TEST(JsonFile, RefusesWhatIsMalformed) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{\"a\": 1,}"), std::string("[1] 2"),
        std::string("\"\\ud800\""), std::string("\"\xFF\""), std::string("\"\x01\""),
        std::string("[1e999]"), std::string("nul"), nested(JsonFile::kMaxDepth + 1),
        nested(100'000), std::string(5000, '{')}) {
    EXPECT_THROW(JsonFile("x.json", text), FormatError) << text.substr(0, 40);
  }
  EXPECT_NO_THROW(JsonFile("x.json", nested(JsonFile::kMaxDepth - 1)));
}

TEST(JsonFile, RefusesWhatHasAnotherTypeOrIsThereTwice) {
  const JsonFile file(
      "x.json", R"({"a": 1, "a": 2, "text": "t", "large": 1e3, "huge": 9223372036854775808})");
  const JsonPlace root = file.root();
  EXPECT_THROW(static_cast<void>(root.find("a")), FormatError);
  EXPECT_THROW(static_cast<void>(root["none"]), FormatError);
  EXPECT_THROW(static_cast<void>(root["text"].integer()), FormatError);
  EXPECT_THROW(static_cast<void>(root["text"].boolean()), FormatError);
  EXPECT_THROW(static_cast<void>(root["text"].object()), FormatError);
  EXPECT_THROW(static_cast<void>(root["text"].elements()), FormatError);
  EXPECT_THROW(static_cast<void>(root["large"].string()), FormatError);
  EXPECT_THROW(static_cast<void>(root["large"].integer()), FormatError);
  EXPECT_THROW(static_cast<void>(root["huge"].integer()), FormatError);
  EXPECT_THROW(root.allow_keys({"a", "text", "large"}), UnsupportedError);
  EXPECT_NO_THROW(root.allow_keys({"a", "text", "large", "huge"}));
}

}  // namespace
}  // namespace limpid
