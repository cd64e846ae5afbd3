#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "executor/delegating_executor.h"
#include "executor/executors.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

std::vector<int32_t> tokens(int64_t n) { return std::vector<int32_t>(static_cast<size_t>(n), 7); }

KvLayout small_layout() { return {1, 1, 4, 0, DType::kF32, DType::kF32}; }

TEST(KvCache, GivesBlocksInOrderOfPositionAndTakesThemBack) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 3 * kKvBlock);
  const SequenceId a = cache.add_sequence();
  const SequenceId b = cache.add_sequence();
  cache.reserve(a, kKvBlock + 1);
  cache.advance(a, tokens(kKvBlock + 1));
  cache.reserve(b, 1);
  cache.advance(b, tokens(1));
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

// A server starts a sequence at each tick while a task waits for room.
static_assert(std::numeric_limits<SequenceId>::digits == 63);

TEST(KvCache, SaysHowManyTokensDoNotFitAndChangesNothing) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 2 * kKvBlock);
  const SequenceId a = cache.add_sequence();
  cache.reserve(a, 10);
  cache.advance(a, tokens(10));
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
  cache.advance(a, tokens(5));
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

// A sequence of the cache with these tokens, as after a step.
SequenceId store(KvCache& cache, std::span<const int32_t> tokens, uint64_t variant = 0) {
  const SequenceId id = cache.add_sequence(variant);
  cache.reserve(id, std::ssize(tokens));
  cache.advance(id, tokens);
  return id;
}

// `n` tokens that no other seed has.
std::vector<int32_t> tokens_of(int32_t seed, int64_t n) {
  std::vector<int32_t> result(static_cast<size_t>(n));
  for (int32_t i = 0; int32_t & token : result) token = 1000 * seed + i++;
  return result;
}

TEST(KvCache, FindsTheLongestPrefixAndLeavesTheLastToken) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 8 * kKvBlock);
  const auto prompt = tokens_of(1, 3 * kKvBlock);
  const SequenceId a = store(cache, prompt);
  const std::vector<int32_t> blocks(cache.blocks(a).begin(), cache.blocks(a).end());
  cache.remove_sequence(a);
  EXPECT_EQ(cache.n_free_blocks(), 8);
  EXPECT_EQ(cache.n_idle_blocks(), 3);

  const SequenceId b = cache.add_sequence();
  EXPECT_EQ(cache.adopt(b, prompt), 3 * kKvBlock - 1);
  EXPECT_EQ(cache.blocks(b)[0], blocks[0]);
  EXPECT_EQ(cache.blocks(b)[1], blocks[1]);
  auto other = prompt;
  other[70] = -1;
  const SequenceId c = cache.add_sequence();
  EXPECT_EQ(cache.adopt(c, other), 70);
  EXPECT_EQ(cache.blocks(c)[0], blocks[0]);
  EXPECT_NE(cache.blocks(c)[1], blocks[1]);  // a copy
  const SequenceId of_another_variant = cache.add_sequence(1);
  EXPECT_EQ(cache.adopt(of_another_variant, prompt), 0);
  EXPECT_EQ(cache.adopt(cache.add_sequence(uint64_t{1} << 32U), prompt), 0);
}

// The second block of `a` and of `b` has the same tokens, after different first blocks.
TEST(KvCache, ABlockIsKnownByAllThatPrecedesIt) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 8 * kKvBlock);
  auto a = tokens_of(1, 2 * kKvBlock);
  auto b = a;
  b[0] = -1;
  store(cache, a);
  const SequenceId of_b = cache.add_sequence();
  b.push_back(0);
  EXPECT_EQ(cache.adopt(of_b, b), 0);
  cache.reserve(of_b, kKvBlock);
  cache.advance(of_b, std::span(b).first(kKvBlock));
  EXPECT_EQ(cache.adopt(of_b, b), kKvBlock);
}

TEST(KvCache, EqualSequencesEndUpWithTheSameBlocks) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 4 * kKvBlock);
  const auto tokens = tokens_of(1, kKvBlock + 3);
  const SequenceId a = store(cache, tokens);
  const SequenceId b = store(cache, tokens);
  EXPECT_EQ(cache.blocks(a)[0], cache.blocks(b)[0]);
  EXPECT_NE(cache.blocks(a)[1], cache.blocks(b)[1]);
  EXPECT_EQ(cache.n_free_blocks(), 1);
}

TEST(KvCache, CopiesASharedBlockBeforeItIsWrittenTo) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 4 * kKvBlock);
  const auto tokens = tokens_of(1, kKvBlock);
  const SequenceId a = store(cache, tokens);
  const SequenceId b = store(cache, tokens);
  const int32_t shared = cache.blocks(a)[0];
  std::vector<std::byte> content(cache.storage().block_bytes());
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i);
  cache.storage().write_block(shared, content);

  cache.truncate(b, 10);
  EXPECT_EQ(cache.n_blocks_needed(b, 1), 1);
  cache.reserve(b, 1);
  EXPECT_EQ(cache.blocks(a)[0], shared);
  EXPECT_NE(cache.blocks(b)[0], shared);
  std::vector<std::byte> copy(content.size());
  cache.storage().read_block(cache.blocks(b)[0], copy);
  EXPECT_EQ(copy, content);

  // Nobody else uses the block: it leaves the tree, and no copy is made.
  cache.remove_sequence(b);
  cache.truncate(a, 10);
  EXPECT_EQ(cache.n_blocks_needed(a, 1), 0);
  cache.reserve(a, 1);
  EXPECT_EQ(cache.blocks(a)[0], shared);
  auto longer = tokens;
  longer.push_back(0);
  EXPECT_EQ(cache.adopt(cache.add_sequence(), longer), 0);
}

TEST(KvCache, TheLeastRecentlyUsedBlockGoesFirst) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 4 * kKvBlock);
  auto old = tokens_of(1, 2 * kKvBlock);
  auto recent = tokens_of(2, kKvBlock);
  cache.remove_sequence(store(cache, old));
  cache.remove_sequence(store(cache, recent));
  old.push_back(0);
  recent.push_back(0);
  EXPECT_EQ(cache.n_idle_blocks(), 3);
  store(cache, tokens_of(3, 2 * kKvBlock));  // takes the free block and the end of `old`
  EXPECT_EQ(cache.n_idle_blocks(), 2);
  EXPECT_EQ(cache.adopt(cache.add_sequence(), old), kKvBlock);
  EXPECT_EQ(cache.adopt(cache.add_sequence(), recent), kKvBlock);
}

TEST(KvCache, ThePartOfABlockThatASequenceLeavesIsFoundAgain) {
  const auto executor = make_reference_executor({.n_threads = 1});
  KvCache cache(*executor, small_layout(), 8 * kKvBlock);
  auto prompt = tokens_of(1, kKvBlock + 20);
  const SequenceId a = store(cache, prompt);
  std::vector<std::byte> content(cache.storage().block_bytes(), std::byte{9});
  cache.storage().write_block(cache.blocks(a)[1], content);
  cache.remove_sequence(a);
  EXPECT_EQ(cache.n_idle_blocks(), 2);
  prompt.resize(kKvBlock + 15);
  prompt.insert(prompt.end(), 10, -1);
  const SequenceId b = cache.add_sequence();
  EXPECT_EQ(cache.adopt(b, prompt), kKvBlock + 15);
  std::vector<std::byte> copy(content.size());
  cache.storage().read_block(cache.blocks(b)[1], copy);
  EXPECT_EQ(copy, content);
  // What the tree holds already does not enter it again.
  cache.remove_sequence(b);
  EXPECT_EQ(cache.n_idle_blocks(), 2);
  EXPECT_EQ(cache.n_free_blocks(), 8);
}

// Its storage copies nothing, and fails on demand.
class FailingExecutor final : public DelegatingExecutor {
 public:
  FailingExecutor() : DelegatingExecutor(make_reference_executor({.n_threads = 1})) {}
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return std::make_unique<Storage>(layout, fails);
  }
  bool fails = false;

 private:
  class Storage final : public KvStorage {
   public:
    Storage(const KvLayout& layout, const bool& fails) : KvStorage(layout), fails_(fails) {}
    void write_block(int64_t /*block*/, std::span<const std::byte> /*content*/) override {
      if (fails_) throw ResourceError("no copy");
    }

   private:
    const bool& fails_;
  };
};

TEST(KvCache, ACopyThatFailsTakesNoBlock) {
  FailingExecutor executor;
  KvCache cache(executor, small_layout(), 8 * kKvBlock);
  auto prompt = tokens_of(1, kKvBlock + 20);
  cache.remove_sequence(store(cache, prompt));
  prompt.push_back(-1);
  executor.fails = true;
  const SequenceId a = cache.add_sequence();
  EXPECT_THROW(cache.adopt(a, prompt), ResourceError);  // of the last 20 tokens
  cache.remove_sequence(a);
  EXPECT_EQ(cache.n_idle_blocks(), 2);
  EXPECT_EQ(cache.n_free_blocks(), 8);

  executor.fails = false;
  store(cache, tokens_of(2, kKvBlock));
  const SequenceId b = store(cache, tokens_of(2, kKvBlock));
  cache.truncate(b, 10);  // a part of a block that both use
  executor.fails = true;
  EXPECT_THROW(cache.reserve(b, 1), ResourceError);
  EXPECT_EQ(cache.n_free_blocks(), 7);
}

TEST(KvCache, GrowsAndKeepsWhatItHolds) {
  for (const auto* name : {"reference", "cpu"}) {
    const auto executor = make_executor(name, {.n_threads = 1});
    KvCache cache(*executor, small_layout(), kKvBlock);
    const SequenceId a = store(cache, tokens_of(1, 5));
    std::vector<std::byte> content(cache.storage().block_bytes(), std::byte{7});
    cache.storage().write_block(cache.blocks(a)[0], content);
    EXPECT_THROW(cache.reserve(a, kKvBlock), ContextOverflowError);
    cache.grow(3 * kKvBlock);
    cache.reserve(a, 2 * kKvBlock);
    EXPECT_EQ(cache.blocks(a).size(), 3U);
    std::vector<std::byte> kept(content.size());
    cache.storage().read_block(cache.blocks(a)[0], kept);
    EXPECT_EQ(kept, content);
  }
}

}  // namespace
}  // namespace limpid
