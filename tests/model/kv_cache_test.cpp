#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include "executor/executors.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

KvLayout small_layout() { return {1, 1, 4, 0, DType::kF32, DType::kF32}; }

TEST(KvCache, GivesBlocksInOrderOfPositionAndTakesThemBack) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 3 * kKvBlock);
  const SequenceId a = cache.add_sequence();
  const SequenceId b = cache.add_sequence();
  cache.reserve(a, kKvBlock + 1);
  cache.advance(a, kKvBlock + 1);
  cache.reserve(b, 1);
  cache.advance(b, 1);
  EXPECT_EQ(cache.blocks(a).size(), 2u);
  EXPECT_EQ(cache.n_free_blocks(), 0);
  EXPECT_NE(cache.blocks(a)[1], cache.blocks(b)[0]);
  cache.truncate(a, kKvBlock);
  EXPECT_EQ(cache.n_free_blocks(), 1);
  EXPECT_EQ(cache.length(a), kKvBlock);
  cache.remove_sequence(b);
  EXPECT_EQ(cache.n_free_blocks(), 2);
  EXPECT_THROW(cache.length(b), ArgumentError);
}

TEST(KvCache, SaysHowManyTokensDoNotFitAndChangesNothing) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 2 * kKvBlock);
  const SequenceId a = cache.add_sequence();
  cache.reserve(a, 10);
  cache.advance(a, 10);
  try {
    cache.reserve(a, 2 * kKvBlock);
    FAIL() << "no exception";
  } catch (const ContextOverflowError& error) {
    EXPECT_EQ(error.n_tokens(), 2 * kKvBlock + 10);
    EXPECT_EQ(error.n_ctx(), 2 * kKvBlock);
  }
  EXPECT_EQ(cache.length(a), 10);
  EXPECT_EQ(cache.n_free_blocks(), 1);
}

TEST(KvCache, TakesBackWhatWasReservedAndNotUsed) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 3 * kKvBlock);
  const SequenceId a = cache.add_sequence();
  const SequenceId b = cache.add_sequence();
  cache.reserve(a, 5);
  cache.advance(a, 5);
  cache.reserve(a, 2 * kKvBlock);
  EXPECT_EQ(cache.n_free_blocks(), 0);
  cache.reserve(a, 1);  // fits into what was reserved
  EXPECT_EQ(cache.blocks(a).size(), 3U);
  cache.truncate(a, cache.length(a));
  EXPECT_EQ(cache.length(a), 5);
  EXPECT_EQ(cache.n_free_blocks(), 2);
  cache.reserve(b, 2 * kKvBlock);
  cache.remove_sequence(b);
  EXPECT_EQ(cache.n_free_blocks(), 2);
}

}  // namespace
}  // namespace limpid
