#include "tokenizer/open_table.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace limpid {
namespace {

struct Number {
  uint64_t value = 0;
  bool is_empty() const { return value == 0; }
  uint64_t hash() const { return value * 0x9E3779B97F4A7C15; }
};

struct Filled {
  OpenTable<Number> table{8};
  uint64_t n_compared = 0;

  bool add(uint64_t value) {
    return table.insert({value}, [&](const Number& number) {
      ++n_compared;
      return number.value == value;
    });
  }
};

TEST(OpenTable, HasEachEntryOnce) {
  Filled filled;
  for (uint64_t i = 1; i <= 1000; ++i) EXPECT_TRUE(filled.add(i * i));
  for (uint64_t i = 1; i <= 1000; ++i) EXPECT_FALSE(filled.add(i * i));
  EXPECT_EQ(filled.table.size(), 1000U);
  size_t n_visited = 0;
  filled.table.for_each([&](const Number&) { ++n_visited; });
  EXPECT_EQ(n_visited, 1000U);
}

TEST(OpenTable, ReserveKeepsEntriesAndNeverShrinks) {
  Filled filled;
  for (uint64_t i = 1; i <= 100; ++i) filled.add(i);
  filled.table.reserve(5000);
  filled.table.reserve(3);
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_FALSE(filled.add(i)) << i;
  EXPECT_EQ(filled.table.size(), 100U);
}

// Without the reservation there are about 2,000 comparisons for each entry.
TEST(OpenTable, IsFilledFromAnotherWithFewComparisons) {
  constexpr uint64_t kCount = 100'000;
  Filled from;
  for (uint64_t i = 1; i <= kCount; ++i) from.add(i * 7919);
  Filled to;
  to.table.reserve(kCount);
  from.table.for_each([&](const Number& number) { to.add(number.value); });
  EXPECT_EQ(to.table.size(), kCount);
  EXPECT_LT(to.n_compared, 2 * kCount);
}

}  // namespace
}  // namespace limpid
