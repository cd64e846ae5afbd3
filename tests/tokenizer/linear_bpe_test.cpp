#include "tokenizer/linear_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "limpid/error.hpp"

namespace limpid {
namespace {

// A vocabulary over few letters with merges in any order; text merges by Merger and by LinearBpe.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::array<TokenId, 256> byte_ids{};
  std::vector<LinearBpe::Merge> merges;

  explicit Vocabulary(std::string_view letters) {
    byte_ids.fill(-1);
    for (const char c : letters) byte_ids[static_cast<uint8_t>(c)] = add(std::string(1, c));
  }
  TokenId add(const std::string& token) {
    const auto it = std::find(tokens.begin(), tokens.end(), token);
    if (it != tokens.end()) return static_cast<TokenId>(it - tokens.begin());
    tokens.push_back(token);
    return static_cast<TokenId>(tokens.size()) - 1;
  }
  void merge(TokenId left, TokenId right, uint32_t rank) {
    const std::string joined =
        tokens[static_cast<size_t>(left)] + tokens[static_cast<size_t>(right)];
    merges.push_back({left, right, rank, add(joined), static_cast<uint32_t>(joined.size())});
  }
  MergeTable table() const {
    MergeTable table(merges.size());
    for (const auto& m : merges) table.insert(m.left, m.right, m.rank, m.merged);
    return table;
  }
  std::vector<TokenId> merged(const std::string& text, const MergeTable& table) const {
    std::vector<TokenId> symbols;
    for (const char c : text) symbols.push_back(byte_ids[static_cast<uint8_t>(c)]);
    Merger().merge(table, symbols);
    return symbols;
  }
};

void expect_the_same(const Vocabulary& vocabulary, std::mt19937& random, std::string_view letters) {
  const MergeTable table = vocabulary.table();
  const LinearBpe bpe(vocabulary.byte_ids, vocabulary.merges);
  LinearBpe::Work work;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const bool alone = vocabulary.merged(vocabulary.tokens[id], table) ==
                       std::vector<TokenId>{static_cast<TokenId>(id)};
    EXPECT_EQ(bpe.stands_alone(static_cast<TokenId>(id)), alone) << vocabulary.tokens[id];
  }
  for (int round = 0; round < 20; ++round) {
    std::string text;
    const size_t size = 1 + random() % (round == 0 ? 300 : 24);
    for (size_t i = 0; i < size; ++i) text.push_back(letters[random() % letters.size()]);
    const auto ids = bpe.encode(text, work);
    const std::vector<TokenId> want = vocabulary.merged(text, table);
    ASSERT_EQ(std::vector<TokenId>(ids.begin(), ids.end()), want) << text;
  }
}

TEST(LinearBpe, GivesWhatMergingGivesForMergesInAnyOrder) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::string_view letters = std::array{"a", "ab", "abc"}[random() % 3];
    Vocabulary vocabulary(letters);
    const size_t count = 1 + random() % 16;
    std::map<std::pair<TokenId, TokenId>, bool> pairs;
    for (size_t i = 0; i < count; ++i) {
      const auto n = static_cast<unsigned>(vocabulary.tokens.size());
      const auto left = static_cast<TokenId>(random() % n);
      const auto right = static_cast<TokenId>(random() % n);
      const size_t size = vocabulary.tokens[static_cast<size_t>(left)].size() +
                          vocabulary.tokens[static_cast<size_t>(right)].size();
      if (size <= 9 && pairs.emplace(std::pair(left, right), true).second)
        vocabulary.merge(left, right, 0);
    }
    // Half of the lists are as training makes them, the others rank merges before those that make
    // their parts.
    std::vector<uint32_t> ranks(vocabulary.merges.size());
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<uint32_t>(i);
    if (trial % 2 == 0) std::shuffle(ranks.begin(), ranks.end(), random);
    for (size_t i = 0; i < ranks.size(); ++i) vocabulary.merges[i].rank = ranks[i];
    expect_the_same(vocabulary, random, letters);
    if (HasFailure()) return;
  }
}

TEST(LinearBpe, GivesWhatMergingGivesForRanksOfTokens) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::string_view letters = std::array{"a", "ab", "abc"}[random() % 3];
    Vocabulary vocabulary(letters);
    const size_t count = 1 + random() % 20;
    for (size_t i = 0; i < count; ++i) {
      const size_t n = vocabulary.tokens.size();
      const std::string token = vocabulary.tokens[random() % n] + vocabulary.tokens[random() % n];
      if (token.size() <= 9) vocabulary.add(token);
    }
    // As tiktoken: any two tokens whose bytes together are a token merge, by that token's rank.
    std::vector<uint32_t> ranks(vocabulary.tokens.size());
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<uint32_t>(i);
    if (trial % 2 == 0) std::shuffle(ranks.begin(), ranks.end(), random);
    const std::vector<std::string> tokens = vocabulary.tokens;
    for (size_t id = 0; id < tokens.size(); ++id) {
      for (size_t cut = 1; cut < tokens[id].size(); ++cut) {
        const auto left = std::find(tokens.begin(), tokens.end(), tokens[id].substr(0, cut));
        const auto right = std::find(tokens.begin(), tokens.end(), tokens[id].substr(cut));
        if (left == tokens.end() || right == tokens.end()) continue;
        vocabulary.merge(static_cast<TokenId>(left - tokens.begin()),
                         static_cast<TokenId>(right - tokens.begin()), ranks[id]);
      }
    }
    expect_the_same(vocabulary, random, letters);
    if (HasFailure()) return;
  }
}

// At each `a` the search would read on for the length of the longest token, so it gives up.
TEST(LinearBpe, GivesWhatMergingGivesWhereTheSearchWouldTakeLong) {
  Vocabulary vocabulary("ax");
  for (TokenId end = 1; end < 500; ++end) vocabulary.merge(0, end, static_cast<uint32_t>(end));
  const LinearBpe bpe(vocabulary.byte_ids, vocabulary.merges);
  const MergeTable table = vocabulary.table();
  LinearBpe::Work work;
  for (const std::string& text : {std::string(3000, 'a'), std::string(3000, 'a') + "xaax"}) {
    const auto ids = bpe.encode(text, work);
    EXPECT_EQ(std::vector<TokenId>(ids.begin(), ids.end()), vocabulary.merged(text, table));
  }
}

TEST(LinearBpe, GivesNothingForABytesWithoutAToken) {
  Vocabulary vocabulary("ab");
  vocabulary.merge(0, 1, 0);
  const LinearBpe bpe(vocabulary.byte_ids, vocabulary.merges);
  LinearBpe::Work work;
  EXPECT_EQ(bpe.encode("abab", work).size(), 2U);
  EXPECT_TRUE(bpe.encode("abxab", work).empty());
  EXPECT_TRUE(bpe.encode("x", work).empty());
  EXPECT_TRUE(bpe.encode("", work).empty());
  EXPECT_EQ(bpe.encode("ba", work).size(), 2U);
}

TEST(LinearBpe, RefusesVocabulariesBeyondItsReach) {
  Vocabulary vocabulary("a");
  vocabulary.merges.push_back({0, 0, 0, 1 << 23, 2});
  EXPECT_THROW(LinearBpe(vocabulary.byte_ids, vocabulary.merges), UnsupportedError);
}

}  // namespace
}  // namespace limpid
