#include "base/checked.h"

#include <gtest/gtest.h>

namespace limpid {
namespace {

TEST(Checked, AddAndMultiplyReportOverflow) {
  EXPECT_EQ(checked_add<uint64_t>(2, 3), 5u);
  EXPECT_EQ(checked_add<uint64_t>(~uint64_t{0}, 1), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 31), uint64_t{1} << 63);
  EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
}

TEST(Checked, AlignUpReportsTheWrapThatPaddingHides) {
  EXPECT_EQ(checked_align_up(33, 32), 64u);
  EXPECT_EQ(checked_align_up(64, 32), 64u);
  EXPECT_EQ(checked_align_up(~uint64_t{0} - 3, 32), std::nullopt);
}

}  // namespace
}  // namespace limpid
