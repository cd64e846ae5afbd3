#include "tokenizer/byte_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace limpid {
namespace {

ByteTrie::Match longest(const ByteTrie& trie, const std::string& text) {
  return trie.longest(text.data(), text.data() + text.size());
}

TEST(ByteTrie, FindsTheLongestTokenThatATextBeginsWith) {
  std::mt19937 random(5);
  for (const unsigned n_letters : {2U, 26U, 256U}) {
    std::map<std::string, TokenId> tokens;
    for (TokenId id = 0; id < 4000; ++id) {
      std::string token;
      const size_t size = 1 + random() % 8;
      for (size_t i = 0; i < size; ++i) token.push_back(static_cast<char>(random() % n_letters));
      tokens.emplace(token, id);
    }
    std::vector<ByteTrie::Token> list(tokens.begin(), tokens.end());
    std::shuffle(list.begin(), list.end(), random);
    const ByteTrie trie(list);
    for (int round = 0; round < 20'000; ++round) {
      std::string text;
      const size_t size = random() % 12;
      for (size_t i = 0; i < size; ++i) text.push_back(static_cast<char>(random() % n_letters));
      ByteTrie::Match want{-1, 0};
      for (size_t n = 1; n <= text.size(); ++n) {
        const auto it = tokens.find(text.substr(0, n));
        if (it != tokens.end()) want = {it->second, static_cast<uint32_t>(n)};
      }
      const ByteTrie::Match got = longest(trie, text);
      ASSERT_EQ(got.id, want.id);
      ASSERT_EQ(got.size, want.size);
    }
  }
}

TEST(ByteTrie, LeavesEmptyTokensOutAndTakesTheFirstOfEquals) {
  const ByteTrie trie({{"", 7}, {"ab", 3}, {"ab", 1}, {std::string_view("\0", 1), 0}});
  EXPECT_EQ(longest(trie, "abc").id, 3);
  EXPECT_EQ(longest(trie, "a").id, -1);
  EXPECT_EQ(longest(trie, "").id, -1);
  EXPECT_EQ(longest(trie, std::string(2, '\0')).id, 0);
  EXPECT_EQ(longest(ByteTrie(), "a").id, -1);
}

}  // namespace
}  // namespace limpid
