#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace limpid {
namespace {

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int64_t>("12"), 12);
  for (const char* text : {"", "12a", " 12", "99999999999999999999"})
    EXPECT_FALSE(parse_number<int64_t>(text)) << text;
}

TEST(ShortestDecimal, RoundsToTheSameFloat) {
  EXPECT_EQ(shortest_decimal(1e-5F), 1e-5);
  EXPECT_EQ(shortest_decimal(0.1F), 0.1);
  EXPECT_EQ(shortest_decimal(500000.0F), 500000.0);
  EXPECT_EQ(shortest_decimal(std::numeric_limits<float>::denorm_min()), 1e-45);
  EXPECT_TRUE(std::isinf(shortest_decimal(1e300)));
  EXPECT_TRUE(std::isnan(shortest_decimal(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace limpid
