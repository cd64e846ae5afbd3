#include "tokenizer/merge_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tokenizer/merger.h"

namespace limpid {
namespace {

// Word for word: find the pair of lowest rank, the leftmost of them; merge it; again.
std::vector<TokenId> merge_by_definition(const MergeTable& table, std::vector<TokenId> symbols) {
  for (;;) {
    size_t best = symbols.size();
    uint32_t best_rank = MergeTable::kNoRank;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const uint32_t rank = table.find(symbols[i], symbols[i + 1]).rank;
      if (rank < best_rank) {
        best_rank = rank;
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = table.find(symbols[best], symbols[best + 1]).merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Random merges over few symbols, many of equal rank, and ranks that do not grow with the depth of
// the merge.
MergeTable random_table(std::mt19937& random, TokenId n_symbols) {
  MergeTable table(static_cast<size_t>(n_symbols) * 6);
  for (TokenId i = 0; i < n_symbols * 3; ++i) {
    table.insert(static_cast<TokenId>(random() % static_cast<unsigned>(n_symbols)),
                 static_cast<TokenId>(random() % static_cast<unsigned>(n_symbols)), random() % 40,
                 static_cast<TokenId>(random() % static_cast<unsigned>(n_symbols)));
  }
  return table;
}

TEST(Merger, EqualsTheDefinitionAtEveryLength) {
  std::mt19937 random(7);
  Merger merger;
  for (int round = 0; round < 600; ++round) {
    const MergeTable table = random_table(random, 6);
    std::vector<TokenId> symbols(round % 200);  // both sides of the switch to the heap
    for (TokenId& s : symbols) s = static_cast<TokenId>(random() % 6);
    const std::vector<TokenId> expected = merge_by_definition(table, symbols);
    merger.merge(table, symbols);
    ASSERT_EQ(symbols, expected) << "round " << round;
  }
}

TEST(MergeTable, FindsWhatWasInsertedAndRefusesASecondOfAPair) {
  MergeTable table(3);
  EXPECT_TRUE(table.insert(1, 2, 0, 5));
  EXPECT_FALSE(table.insert(1, 2, 1, 6));
  EXPECT_TRUE(table.insert(2, 1, 1, 6));
  EXPECT_EQ(table.find(1, 2).merged, 5);
  EXPECT_EQ(table.find(2, 1).rank, 1U);
  EXPECT_EQ(table.find(2, 2).rank, MergeTable::kNoRank);
}

}  // namespace
}  // namespace limpid
