// Ranks and scores as lists of merges, and a list as scores.
#include "tokenizer/merge_list.h"

#include <gtest/gtest.h>

#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

TokenizerSpec ranks(std::vector<std::string> pieces) {
  TokenizerSpec spec;
  spec.merge_order = MergeOrder::kRanks;
  spec.pieces = std::move(pieces);
  spec.types.assign(spec.pieces.size(), TokenType::kNormal);
  return spec;
}

TEST(MergeList, OfRanksHasEveryWayToMakeAPieceByTheIdsOfItsParts) {
  const auto merges = merge_list(ranks({"b", "a", "c", "ab", "bc", "abc"}));
  EXPECT_EQ(merges, (std::vector<std::string>{"a b", "b c", "a bc", "ab c"}));
}

TEST(MergeList, IsOfCharactersNotOfBytes) {
  const auto merges = merge_list(ranks({"\u0120", "\u0101", "\u0120\u0101"}));
  EXPECT_EQ(merges, std::vector<std::string>{"\u0120 \u0101"});
}

TEST(MergeList, OfScoresBeginsWithTheHighest) {
  TokenizerSpec spec = ranks({"a", "b", "c", "ab", "bc", "<s>", "<s>a"});
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.merge_order = MergeOrder::kScores;
  spec.scores = {0, 0, 0, -2, -1, 0, -3};
  spec.types[5] = TokenType::kControl;  // nothing merges from it
  EXPECT_EQ(merge_list(spec), (std::vector<std::string>{"b c", "a b"}));
  EXPECT_EQ(n_equal_scores(spec), 0u);
  spec.scores[3] = -1;  // then by id
  EXPECT_EQ(merge_list(spec), (std::vector<std::string>{"a b", "b c"}));
  EXPECT_EQ(n_equal_scores(spec), 1u);
}

// The way back orders the merges of a real vocabulary as the scores did.
TEST(MergeList, GivesScoresThatMergeAlike) {
  const TokenizerSpec scored = small_vocabulary("spm");
  TokenizerSpec listed = scored;
  listed.merges = merge_list(scored);
  listed.merge_order = MergeOrder::kList;
  ASSERT_GT(listed.merges.size(), 50u);
  const auto scores = merge_scores(listed);
  ASSERT_TRUE(scores.has_value());
  TokenizerSpec again = scored;
  again.scores = *scores;
  EXPECT_EQ(merge_list(again), listed.merges);
  const std::string text = "The sea, the seas and the seasons: 12 na\u00efve caf\u00e9s \u4f60\n\n";
  EXPECT_EQ(Tokenizer::create(again)->encode(text), Tokenizer::create(scored)->encode(text));

  std::rotate(listed.merges.begin(), listed.merges.begin() + 1, listed.merges.end());
  const auto rotated = merge_scores(listed);
  EXPECT_TRUE(!rotated || *rotated != *scores);
  listed.merges.pop_back();
  EXPECT_EQ(merge_scores(listed), std::nullopt);
}

TEST(MergeList, ThatPutsAPieceBetweenTheWaysToAnotherHasNoScores) {
  TokenizerSpec spec = ranks({"a", "b", "c", "ab", "bc", "abc"});
  spec.merge_order = MergeOrder::kList;
  spec.merges = {"a b", "ab c", "b c", "a bc"};
  EXPECT_EQ(merge_scores(spec), std::nullopt);
  spec.merges = {"a b", "b c", "ab c", "a bc"};
  const auto scores = merge_scores(spec);
  ASSERT_TRUE(scores.has_value());
  EXPECT_GT((*scores)[3], (*scores)[4]);
  EXPECT_GT((*scores)[4], (*scores)[5]);
}

TEST(MergeList, WithAnEntryThatIsNoMergeHasNoScores) {
  TokenizerSpec spec = ranks({"a", "b", "ab"});
  spec.merge_order = MergeOrder::kList;
  for (const char* merge : {"", " ", "ab", "a b ", " ab"}) {
    spec.merges = {merge};
    EXPECT_EQ(merge_scores(spec), std::nullopt) << merge;
  }
}

}  // namespace
}  // namespace limpid
