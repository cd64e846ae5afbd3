#include "generate/stop_matcher.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"

namespace limpid {
namespace {

struct Found {
  std::string text;
  std::string stop;
  bool operator==(const Found&) const = default;
};

Found run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  std::string text;
  for (const auto& piece : pieces) text += matcher.push(piece);
  return {text + matcher.finish(), matcher.matched()};
}

TEST(StopMatcher, FindsWhatEndsFirst) {
  EXPECT_EQ(run({"STOP"}, {"one STOP two"}), (Found{"one ", "STOP"}));
  EXPECT_EQ(run({"b", "ab"}, {"cab"}), (Found{"c", "ab"}));
  EXPECT_EQ(run({"abcd", "bc"}, {"abcd"}), (Found{"a", "bc"}));
  EXPECT_EQ(run({"x"}, {"", "abc", ""}), (Found{"abc", ""}));
  EXPECT_EQ(run({"\n\n"}, {"a\n", "b\n", "\n", "c"}), (Found{"a\nb", "\n\n"}));
}

// However a text is cut, the outcome is the same: all ways to cut a text of 12 bytes.
TEST(StopMatcher, DoesNotDependOnHowTheTextIsCut) {
  const std::string text = "aabaabaaabab";
  for (const auto& stops : std::vector<std::vector<std::string>>{{"aaab"},
                                                                 {"aba", "baab"},
                                                                 {"bab"},
                                                                 {"abaaa", "baa"},
                                                                 {"c"},
                                                                 {"aabaabaaababX", "babX"},
                                                                 {"aaba"}}) {
    const Found whole = run(stops, {text});
    for (unsigned cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
      std::vector<std::string> pieces = {""};
      for (size_t i = 0; i < text.size(); ++i) {
        pieces.back() += text[i];
        if ((cuts >> i & 1U) != 0) pieces.emplace_back();
      }
      ASSERT_EQ(run(stops, pieces), whole) << stops[0] << " " << cuts;
    }
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStopString) {
  StopMatcher matcher({"</end>"});
  EXPECT_EQ(matcher.push("a < b"), "a < b");
  EXPECT_EQ(matcher.push(" <"), " ");
  EXPECT_EQ(matcher.push("/e"), "");
  EXPECT_EQ(matcher.push("x"), "</ex");
  EXPECT_EQ(matcher.push("</end"), "");
  EXPECT_EQ(matcher.finish(), "</end");
}

TEST(StopMatcher, GivesNothingAfterAMatch) {
  StopMatcher matcher({"."});
  EXPECT_EQ(matcher.push("a.b"), "a");
  EXPECT_EQ(matcher.push("c"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, RefusesEmptyAndHalfCharacters) {
  EXPECT_THROW(StopMatcher({""}), ArgumentError);
  EXPECT_THROW(StopMatcher({"\xA4"}), ArgumentError);
}

}  // namespace
}  // namespace limpid
