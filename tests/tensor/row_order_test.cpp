#include "tensor/row_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace limpid {
namespace {

TEST(RowOrder, PairsComeApartWithinEachHead) {
  // Two heads of six rows, of which four turn: 0 1 2 3 become 0 2 1 3, and 4 5 stay.
  const std::vector<int64_t> half_split = {0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11};
  for (int64_t row = 0; row < 12; ++row)
    EXPECT_EQ(half_split_row(row, 6, 4), half_split[static_cast<size_t>(row)]) << row;
}

TEST(RowOrder, TheWayBackIsTheInverse) {
  for (const int64_t n_rot : {int64_t{0}, int64_t{2}, int64_t{6}, int64_t{16}}) {
    for (int64_t row = 0; row < 48; ++row) {
      EXPECT_EQ(interleaved_row(half_split_row(row, 16, n_rot), 16, n_rot), row);
      EXPECT_EQ(half_split_row(interleaved_row(row, 16, n_rot), 16, n_rot), row);
    }
  }
}

}  // namespace
}  // namespace limpid
