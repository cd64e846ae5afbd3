#include "checkpoint/gguf_part.h"

#include <gtest/gtest.h>

namespace limpid {
namespace {

TEST(GgufPart, ReadsTheNumbersOfAName) {
  const auto part = parse_gguf_part("models/a-b-00002-of-00013.gguf");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->base, "models/a-b");
  EXPECT_EQ(part->number, 2U);
  EXPECT_EQ(part->count, 13U);
  EXPECT_EQ(part->name(), "models/a-b-00002-of-00013.gguf");
}

TEST(GgufPart, IsNotAnotherName) {
  for (const char* name :
       {"", "a.gguf", "-of-00002.gguf", "a-00001-of-00002.bin", "a-0001-of-00002.gguf",
        "a-00003-of-00002.gguf", "a-00000-of-00002.gguf", "a-00001-of-00000.gguf",
        "a-+0001-of-00002.gguf", "a_00001-of-00002.gguf", "a-00001-to-00002.gguf"}) {
    EXPECT_FALSE(parse_gguf_part(name).has_value()) << name;
    EXPECT_EQ(all_gguf_parts(name), std::vector<std::string>{name}) << name;
  }
}

TEST(GgufPart, OneFileOpensAModel) {
  for (const char* name : {"a.gguf", "models/a-00001-of-00003.gguf", "mmproj/a.gguf"})
    EXPECT_TRUE(is_gguf_of_model(name)) << name;
  for (const char* name : {"", "a.bin", "models/a-00003-of-00003.gguf", "models/mmproj-a.gguf"})
    EXPECT_FALSE(is_gguf_of_model(name)) << name;
}

TEST(GgufPart, AnyPartGivesAll) {
  EXPECT_EQ(all_gguf_parts("a-00003-of-00003.gguf"),
            (std::vector<std::string>{"a-00001-of-00003.gguf", "a-00002-of-00003.gguf",
                                      "a-00003-of-00003.gguf"}));
}

}  // namespace
}  // namespace limpid
