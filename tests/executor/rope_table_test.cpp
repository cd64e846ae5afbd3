#include "executor/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "limpid/error.hpp"

namespace limpid {
namespace {

TEST(SineCosine, IsExactToTheLastDigits) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-30, 21);
  double worst = 0;
  const auto check = [&](double angle) {
    const SineCosine y = sine_cosine(angle);
    // x87 arithmetic has 64 bits of mantissa and reduces angles of this size well enough.
    worst = std::max(
        {worst, std::abs(static_cast<double>(y.sine - std::sin(static_cast<long double>(angle)))),
         std::abs(static_cast<double>(y.cosine - std::cos(static_cast<long double>(angle))))});
  };
  for (int i = 0; i < 200000; ++i) check(std::exp2(exponent(random)));
  for (int i = 0; i < 100000; ++i) check(i);
  for (int i = 1; i < 100000; ++i) check(i * 13 * (M_PI / 2));  // where one of them is nearly 0
  EXPECT_LE(worst, 5e-16);
  EXPECT_EQ(sine_cosine(0).sine, 0.0);
  EXPECT_EQ(sine_cosine(0).cosine, 1.0);
}

TEST(RopeAngles, HoldAnglesOfPositionsTimesFrequencies) {
  const std::vector<double> frequencies = {1.0, 0.25, 1e-4};
  RopeAngles angles(frequencies, 5000);
  angles.compute_to(77);
  const float first = angles.cosines(77)[1];
  angles.compute_to(4999);
  EXPECT_EQ(angles.cosines(77)[1], first);
  for (const int64_t position : {0, 1, 77, 4999}) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      EXPECT_FLOAT_EQ(angles.cosines(position)[i], static_cast<float>(std::cos(angle)));
      EXPECT_NEAR(angles.sines(position)[i], std::sin(angle), 3e-8);
    }
  }
}

TEST(RopeAngles, RefuseAnglesThatTheyCannotComputeWell) {
  EXPECT_THROW(RopeAngles(std::vector<double>{1e3}, 1 << 20), ArgumentError);
  EXPECT_THROW(RopeAngles(std::vector<double>{-1.0}, 10), ArgumentError);
  EXPECT_THROW(RopeAngles(std::vector<double>{NAN}, 10), ArgumentError);
}

}  // namespace
}  // namespace limpid
