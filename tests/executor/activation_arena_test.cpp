#include "executor/cpu/activation_arena.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Ten ranges at once, nine of up to 32 MiB and one of 500 MiB, in every order that a coin gives:
// with gaps that fit nothing the arena still has room. No page is touched.
TEST(ActivationArena, HoldsWhatWasReservedInAnyOrder) {
  constexpr size_t kRanges = 10;
  constexpr int64_t kMost = 32 * kMiB / sizeof(float);
  constexpr int64_t kLargest = 500 * kMiB / sizeof(float);
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    ActivationArena arena;
    arena.reserve(kRanges, 32 * kMiB, 500 * kMiB);
    std::mt19937 random(seed);
    std::vector<int32_t> taken;
    int32_t large = -1;
    for (int i = 0; i < 3000; ++i) {
      const bool is_full = taken.size() + (large >= 0 ? 1 : 0) == kRanges;
      if (large >= 0 && random() % 4 == 0) {
        arena.give(large);
        large = -1;
      } else if (!taken.empty() && (is_full || random() % 3 == 0)) {
        const size_t at = random() % taken.size();
        arena.give(taken[at]);
        taken.erase(taken.begin() + static_cast<int64_t>(at));
      } else if (large < 0 && random() % 4 == 0) {
        large = arena.take(kLargest);
      } else {
        // Most are the largest or tiny: tiny ones in between make the gaps.
        const int64_t sizes[] = {1, kMost, kMost / 2, 1 + static_cast<int64_t>(random()) % kMost};
        taken.push_back(arena.take(sizes[random() % 4]));
      }
      ASSERT_EQ(arena.n_pieces(), 1) << "seed " << seed << ", step " << i;
    }
  }
}

// So that threads find the lines that they wrote. Small ranges get the lowest free memory.
TEST(ActivationArena, GivesTheMemoryOfTheSameSizeWithinAStep) {
  constexpr int64_t kLarge = kMiB / sizeof(float);
  constexpr int64_t kSmall = 100;
  ActivationArena arena;
  arena.reserve(4, 2 * kMiB, 2 * kMiB);
  const int32_t all_along = arena.take(kSmall);
  const auto where = [&](int64_t n_floats) {  // the place of a range that is given back at once
    const int32_t id = arena.take(n_floats);
    arena.give(id);
    return arena.data(id);
  };
  const float* const of_two = where(2 * kLarge);
  const float* const of_one = where(kLarge);
  EXPECT_NE(of_one, of_two);
  EXPECT_EQ(where(2 * kLarge), of_two);
  EXPECT_EQ(where(kLarge), of_one);
  EXPECT_EQ(where(kSmall), where(kSmall / 2));
  arena.give(all_along);
  EXPECT_EQ(where(kLarge), where(2 * kLarge));  // the step has ended, and all is free
}

TEST(ActivationArena, KeepsItsMemoryWhenMoreCannotBeHad) {
  ActivationArena arena;
  arena.reserve(3, kMiB, kMiB);
  const int32_t before = arena.take(100);
  const float* address = arena.data(before);
  arena.give(before);
  EXPECT_THROW(arena.reserve(3, uint64_t{1} << 60, kMiB), ResourceError);  // more than addresses
  EXPECT_THROW(arena.reserve(3, uint64_t{1} << 63, kMiB), ResourceError);  // overflows
  EXPECT_EQ(arena.n_pieces(), 1);
  EXPECT_EQ(arena.data(arena.take(100)), address);
}

TEST(ActivationArena, GrowsInOnePieceAndBeyondWhatWasReserved) {
  ActivationArena arena;
  arena.reserve(2, kMiB, kMiB);
  arena.reserve(2, 100 * kMiB, kMiB);
  EXPECT_EQ(arena.n_pieces(), 1);
  std::vector<int32_t> taken;
  for (int i = 0; i < 3000; ++i) taken.push_back(arena.take(kMiB / 4));
  EXPECT_GT(arena.n_pieces(), 1);
  for (int i = 0; i < 3000; i += 2) arena.give(taken[static_cast<size_t>(i)]);
  for (int i = 1; i < 3000; i += 2) arena.give(taken[static_cast<size_t>(i)]);
  EXPECT_EQ(arena.n_taken(), 0);
}

}  // namespace
}  // namespace limpid
