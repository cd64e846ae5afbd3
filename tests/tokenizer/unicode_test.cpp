#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/normalize.h"

namespace limpid::unicode {
namespace {

TEST(Unicode, DecodesEveryScalarValueAndNothingElse) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string bytes;
    append_utf8(c, bytes);
    const CodePoint decoded = decode(bytes.data(), bytes.data() + bytes.size());
    if (c >= 0xD800 && c < 0xE000) {
      EXPECT_EQ(decoded.size, 1U);
      EXPECT_EQ(decoded.value, kInvalidByte + 0xED);
    } else if (decoded.value != c || decoded.size != bytes.size()) {
      FAIL() << std::hex << static_cast<uint32_t>(c);
    }
  }
}

TEST(Unicode, ReadsIllFormedBytesOneByOne) {
  for (const std::string_view bytes :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80", "\xFF", "\xE2\x82", "\xC3"}) {
    const CodePoint c = decode(bytes.data(), bytes.data() + bytes.size());
    EXPECT_EQ(c.size, 1U);
    EXPECT_EQ(c.value, kInvalidByte + static_cast<uint8_t>(bytes[0]));
    EXPECT_EQ(properties_of(c.value), bit(kCn));
  }
}

TEST(Unicode, FindsTheLastCharacter) {
  const auto last = [](std::string_view text) { return decode_last(text); };
  EXPECT_EQ(last("aé").value, U'é');
  EXPECT_EQ(last("a😀").size, 4U);
  EXPECT_EQ(last("éa").value, U'a');
  // Bytes that are not part of a character: one too many, one too few.
  EXPECT_EQ(last("\xC3\xA9\xA9").value, kInvalidByte + 0xA9);
  EXPECT_EQ(last("a\xE2\x82").value, kInvalidByte + 0x82);
  EXPECT_EQ(last("\x80").value, kInvalidByte + 0x80);
}

TEST(Unicode, CountsAndSkipsCharacters) {
  for (const std::string text :
       {"", "a", "twelve bytes", "eight by\u00e9 eight by\u4e00 and \U0001F600 at the end",
        "\xFF\x80 bytes and \xE2\x82 a cut one, \xED\xA0\x80 a surrogate \xC3"}) {
    std::vector<size_t> begins;
    for_each_character(text, [&](std::string_view character) {
      begins.push_back(static_cast<size_t>(character.data() - text.data()));
    });
    EXPECT_EQ(n_characters(text), begins.size()) << text;
    for (size_t n = 0; n < begins.size(); ++n)
      EXPECT_EQ(character_offset(text, static_cast<int64_t>(n)), begins[n]) << text;
    for (const size_t n : {begins.size(), begins.size() + 100})
      EXPECT_EQ(character_offset(text, static_cast<int64_t>(n)), text.size()) << text;
  }
}

TEST(Unicode, AsciiTableEqualsTheGeneratedOne) {
  for (char32_t c = 0; c < 128; ++c)
    EXPECT_EQ(kAsciiProperties[c], properties_of(c)) << static_cast<uint32_t>(c);
}

TEST(Unicode, KnowsProperties) {
  EXPECT_TRUE(properties_of(0xE9) & bit(kLl));
  EXPECT_TRUE(properties_of(0x4E00) & bit(kLo));
  EXPECT_TRUE(properties_of(0x0301) & bit(kMn));
  EXPECT_TRUE(properties_of(0x2167) & bit(kNl));
  EXPECT_TRUE(properties_of(0x3000) & kSpace);
  EXPECT_FALSE(properties_of(0x200B) & kSpace);
  EXPECT_TRUE(properties_of(0x1F600) & kSymbol);
  EXPECT_TRUE(properties_of(0x16FF4) & kNumeric);  // Unicode 17: numeric for Rust …
  EXPECT_FALSE(properties_of(0x16FF4) & kNumber);  // … unassigned for Oniguruma's Unicode 16
}

TEST(Unicode, ReplacesMaximalIllFormedPartsAsPythonDoes) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid("a\x80z"), "a" + r + "z");
  EXPECT_EQ(replace_invalid("\xE2\x82"), r);
  EXPECT_EQ(replace_invalid("\xE2\x82z"), r + "z");
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98\xF0\x9F\x98\x80"), r + "\xF0\x9F\x98\x80");
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(replace_invalid("\xC0\xAF"), r + r);
}

TEST(Unicode, HoldsBackOnlyWhatCanStillBecomeWhole) {
  EXPECT_EQ(complete_prefix("ab\xE2\x82"), 2U);
  EXPECT_EQ(complete_prefix("ab\xF0\x9F\x98"), 2U);
  EXPECT_EQ(complete_prefix("ab\xF0"), 2U);
  EXPECT_EQ(complete_prefix("ab\xE2\x82\xAC"), 5U);
  EXPECT_EQ(complete_prefix("ab\x80"), 3U);      // never valid: nothing to wait for
  EXPECT_EQ(complete_prefix("ab\xE0\x80"), 4U);  // E0 80 is ill-formed already
  EXPECT_EQ(complete_prefix("ab\xC0"), 3U);
  EXPECT_EQ(complete_prefix(""), 0U);
}

std::string nfc(std::string_view text) {
  std::string out;
  return normalize_nfc(text, out) ? out : std::string(text);
}

TEST(Normalize, ComposesReordersAndLeavesTheRest) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\u212B"), "\u00C5");
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");  // excluded from composition
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("xe\u0301y e\u0301e\u0301\u0302z\u0301"), "x\u00E9y \u00E9\u00E9\u0302\u017A");
  EXPECT_EQ(nfc("x\u00FC\u0301"), "x\u01D8");
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
  EXPECT_EQ(nfc("a\xFF"
                "e\u0301\x80"),
            "a\xFF\u00E9\x80");
}

TEST(Normalize, SaysWhenThereIsNothingToDo) {
  std::string out = "untouched";
  EXPECT_FALSE(normalize_nfc("caf\u00E9 \u4E00 \uAC01 \xFF", out));
  EXPECT_EQ(out, "untouched");
  EXPECT_FALSE(normalize_nfc("", out));
}

}  // namespace
}  // namespace limpid::unicode
