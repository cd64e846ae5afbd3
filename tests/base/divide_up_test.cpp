#include "base/divide_up.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace limpid {
namespace {

TEST(DivideUp, CountsTheParts) {
  for (int64_t n = 0; n < 20; ++n) {
    int64_t n_parts = 0;
    while (n_parts * 3 < n) ++n_parts;
    EXPECT_EQ(divide_up(n, 3), n_parts) << n;
  }
}

TEST(DivideUp, HoldsTheLargestNumbers) {
  constexpr auto kSigned = std::numeric_limits<int64_t>::max();
  constexpr auto kUnsigned = std::numeric_limits<uint64_t>::max();
  static_assert(divide_up(kSigned, 2) == kSigned / 2 + 1);
  static_assert(divide_up(kSigned, kSigned) == 1);
  static_assert(divide_up(kUnsigned, 64) == kUnsigned / 64 + 1);
  static_assert(divide_up(kUnsigned, kUnsigned) == 1);
}

}  // namespace
}  // namespace limpid
