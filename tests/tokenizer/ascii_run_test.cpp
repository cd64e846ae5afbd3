#include "tokenizer/ascii_run.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace limpid::ascii {
namespace {

template <class AnyBlock>
void expect_classes_of(const std::string& text) {
  const AnyBlock block(text.data());
  const auto mask_of = [&](auto&& holds) {
    Mask mask = 0;
    for (size_t i = 0; i < kBlock; ++i) mask |= Mask{holds(static_cast<uint8_t>(text[i]))} << i;
    return mask;
  };
  ASSERT_EQ(block.letters(),
            mask_of([](int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }));
  ASSERT_EQ(block.high(), mask_of([](int c) { return c >= 0x80; }));
  for (const auto& [low, high] : {std::pair('A', 'Z'), std::pair('\t', '\r'), std::pair(' ', ' '),
                                  std::pair('0', '9'), std::pair('\0', '\x7F')}) {
    ASSERT_EQ(block.between(static_cast<uint8_t>(low), static_cast<uint8_t>(high)),
              mask_of([low = low, high = high](int c) { return c >= low && c <= high; }));
  }
}

TEST(AsciiRun, BlocksKnowTheirClassesWithSimdAndWithout) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text(kBlock, ' ');
    for (char& c : text) c = static_cast<char>(random());
    expect_classes_of<Block>(text);
    expect_classes_of<PlainBlock>(text);
  }
}

template <class Class>
void expect_run_ends(std::mt19937& random) {
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const size_t size = random() % 70;
    while (text.size() < size) {
      const char c = static_cast<char>(random() % 128);
      if (Class::holds(c) || random() % 200 == 0) text.push_back(c);
    }
    size_t want = 0;
    while (want < text.size() && Class::holds(text[want])) ++want;
    const char* const begin = text.data();
    ASSERT_EQ(run_end<Class>(begin, begin + text.size()) - begin, static_cast<int>(want));
  }
}

TEST(AsciiRun, EndsWhereTheClassEnds) {
  std::mt19937 random(4);
  expect_run_ends<Letters>(random);
  expect_run_ends<Upper>(random);
  expect_run_ends<Lower>(random);
  expect_run_ends<Signs>(random);
}

}  // namespace
}  // namespace limpid::ascii
