#include "tokenizer/regex_splitter.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

std::vector<std::string> cut(const std::vector<SplitStep>& steps, std::string_view text) {
  std::vector<std::string> pieces;
  RegexSplitter(steps).split(
      text, [&](const char* begin, size_t size) { pieces.emplace_back(begin, size); });
  return pieces;
}
std::vector<std::string> cut(const char* pattern, std::string_view text) {
  SplitStep step;
  step.pattern = pattern;
  return cut(std::vector<SplitStep>{step}, text);
}
using Pieces = std::vector<std::string>;

TEST(RegexSplitter, IsolatesMatchesAndWhatLiesBetween) {
  EXPECT_EQ(cut("b+", "abbcb"), (Pieces{"a", "bb", "c", "b"}));
  EXPECT_EQ(cut("b+", ""), Pieces{});
  EXPECT_EQ(cut("b*", "abc"), (Pieces{"a", "b", "c"}));  // empty matches cut too
  SplitStep matches;
  matches.pattern = "\\p{L}+";
  matches.drop_gaps = true;
  EXPECT_EQ(cut({matches}, "ab 12 c"), (Pieces{"ab", "c"}));
  SplitStep numbers;
  numbers.kind = SplitStep::Kind::kNumeric;
  EXPECT_EQ(cut({numbers}, "ab12c3"), (Pieces{"ab", "1", "2", "c", "3"}));
  numbers.contiguous = true;
  EXPECT_EQ(cut({numbers}, "ab12c3"), (Pieces{"ab", "12", "c", "3"}));
  matches.drop_gaps = false;
  EXPECT_EQ(cut({numbers, matches}, "12 ab"), (Pieces{"12", " ", "ab"}));
}

TEST(RegexSplitter, ReadsOnigurumasSyntax) {
  EXPECT_EQ(cut("\\p{N}{1,3}+", "12345678x"), (Pieces{"12345678", "x"}));  // not possessive
  EXPECT_EQ(cut("\\p{N}{,2}", "12345"), (Pieces{"12", "34", "5"}));
  EXPECT_EQ(cut("b$", "ab\nab"), (Pieces{"a", "b", "\na", "b"}));
  EXPECT_EQ(cut("^a", "aa\naa"), (Pieces{"a", "a\n", "a", "a"}));
  EXPECT_EQ(cut(".+", "ab\ncd"), (Pieces{"ab", "\n", "cd"}));
  EXPECT_EQ(cut("\\v", "a\vb\xE2\x80\xA8"), (Pieces{"a", "\v", "b\xE2\x80\xA8"}));
  EXPECT_EQ(cut("[^a[bc]]", "abxc"), (Pieces{"ab", "x", "c"}));
  EXPECT_EQ(cut("(?i:'s|'ll)", "'S'LL'\xC5\xBF"), (Pieces{"'S", "'LL", "'\xC5\xBF"}));
  EXPECT_EQ(cut("\\s+(?!\\S)|\\s", "  a"), (Pieces{" ", " ", "a"}));
  // U+0897 is a mark since Unicode 16.
  EXPECT_EQ(cut("\\p{M}", "a\xE0\xA2\x97"), (Pieces{"a", "\xE0\xA2\x97"}));
}

TEST(RegexSplitter, BytesThatAreNotUtf8MatchNothing) {
  EXPECT_EQ(cut("[^a]", "a\xFF"), (Pieces{"a\xFF"}));
  EXPECT_EQ(cut("[^a]",
                "a\xC3\xA9\xFF"
                "b"),
            (Pieces{"a", "\xC3\xA9", "\xFF", "b"}));
}

TEST(RegexSplitter, BacktrackingIsBounded) {
  const std::string text(200, 'a');
  EXPECT_THROW(cut("(a+a+)+[bc]", text), ResourceError);
}

// Every "a" leaves fifty other ways to match, within the limit of steps.
TEST(RegexSplitter, MemoryForBacktrackingIsBounded) {
  std::string pattern = "(?:";
  for (int i = 0; i < 50; ++i) pattern += "b??";
  pattern += "a)+";
  try {
    cut(pattern.c_str(), std::string(10'000, 'a'));
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    EXPECT_NE(std::string(error.what()).find("41000 alternatives"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(cut("(?:(?:a|b)|c)+", std::string(10'000, 'a')).size(), 1);
}

TEST(RegexSplitter, RefusesByNameWhatItDoesNotDo) {
  const std::pair<const char*, const char*> refused[] = {
      {"a\\w", "'\\w'"},     {"(?<n>a)", "the group '(?<n'"}, {"(a", "an unterminated group"},
      {"[a", "class"},       {"*a", "nothing to repeat"},     {"(a?)*", "may be empty"},
      {"(?<=a+)b", "fixed"}, {"a{1,2000}", "up to 1000"},     {"(?:(a{1000}){999}){9}", "too many"},
      {"a)", "without '('"}, {"\\p{Greek}", "'Greek'"},       {"[[:alpha:]]", "POSIX"}};
  for (const auto& [pattern, what] : refused) {
    try {
      cut(pattern, "a");
      ADD_FAILURE() << pattern;
    } catch (const UnsupportedError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  }
}

TEST(RegexSplitter, GoesBackAsOnigurumaDoes) {
  EXPECT_EQ(cut("a+?b|a", "aab"), (Pieces{"aab"}));
  EXPECT_EQ(cut("(?>a+)ab|a", "aab"), (Pieces{"a", "a", "b"}));
  EXPECT_EQ(cut("a++b|a", "aaac"), (Pieces{"a", "a", "a", "c"}));
  EXPECT_EQ(cut("(?:ab*)?+bc|[abc]", "abbc"), (Pieces{"a", "b", "bc"}));
  EXPECT_EQ(cut("(?<=a|bc)x", "axbcxcx"), (Pieces{"a", "x", "bc", "x", "cx"}));
  EXPECT_EQ(cut("(?<!\xC3\xA9)x", "\xC3\xA9xyx"), (Pieces{"\xC3\xA9xy", "x"}));
  EXPECT_EQ(cut("(?:a|ab)(?:c|bcd)", "abcd"), (Pieces{"abcd"}));
}

TEST(KnownSplits, AreFoundByTheirExpressions) {
  SplitStep step;
  step.pattern = kByteLevelPattern;
  EXPECT_EQ(find_scanner({step}), std::optional(PreTokenizer::kGpt2));
  SplitStep digits;
  digits.kind = SplitStep::Kind::kNumeric;
  EXPECT_EQ(find_scanner({digits, step}), std::optional(PreTokenizer::kDigitsGpt2));
  digits.contiguous = true;
  EXPECT_FALSE(find_scanner({digits, step}).has_value());
  step.pattern += "|x";
  EXPECT_FALSE(find_scanner({step}).has_value());
  EXPECT_EQ(find_scanner({}), std::optional(PreTokenizer::kNone));
}

}  // namespace
}  // namespace limpid
