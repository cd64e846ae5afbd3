// Sizes of numbers, counted by powers of two.
#include "train/value_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace limpid {
namespace {

// A histogram of numbers whose magnitudes begin at 2^lowest.
ValueHistogram of(int lowest, const std::vector<int64_t>& counts) {
  ValueHistogram histogram;
  std::ranges::copy(counts, histogram.counts.begin() + lowest - ValueHistogram::kLowest);
  return histogram;
}

TEST(ValueHistogram, CountsMagnitudes) {
  const std::vector<float> values = {1, -1, 1.99F, 2, -0.5F, 0.125F};
  EXPECT_EQ(histogram_of(values).counts, of(-3, {1, 0, 1, 3, 1}).counts);
}

TEST(ValueHistogram, CountsValuesWithoutTheirScale) {
  const std::vector<float> values = {1, -1.99F, 2, 0.125F, 0};
  std::vector<float> scaled;
  for (const float value : values) scaled.push_back(std::ldexp(value, 16));
  const ValueHistogram histogram = histogram_of(scaled, 16);
  EXPECT_EQ(histogram.counts.front(), 1);  // the zero
  EXPECT_EQ(histogram.counts, histogram_of(values).counts);
  EXPECT_EQ(histogram_of(values, -16).counts.back(), 4);  // beyond the last bin
}

TEST(ValueHistogram, HasEndsForEverything) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0, -0.0F, 1e-40F, std::ldexp(1.0F, -40), 1e30F, -infinite};
  const ValueHistogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.counts.front(), 4);
  EXPECT_EQ(histogram.counts.back(), 2);
  EXPECT_EQ(histogram_of({}).counts, ValueHistogram().counts);
}

TEST(ValueHistogram, AddsUp) {
  ValueHistogram sum;
  add_histogram(sum, of(-2, {1, 2}));
  add_histogram(sum, of(-1, {5, 7}));
  add_histogram(sum, {});
  EXPECT_EQ(sum.counts, of(-2, {1, 7, 7}).counts);
}

TEST(HistogramLine, ComesBackFromItsLine) {
  HistogramLine line;
  line.step = 250;
  line.weights["a"] = of(-7, {1, 2, 3});
  line.weights["b"] = of(0, {4});
  line.gradients["a"] = of(-20, {9, 0, 1});
  const std::string text = to_json_line(line);
  EXPECT_EQ(text,
            R"({"step":250,"weights":{"a":[-7,1,2,3],"b":[0,4]},"gradients":{"a":[-20,9,0,1]}})");
  const HistogramLine read = histogram_line(nlohmann::json::parse(text));
  EXPECT_EQ(to_json_line(read), text);
}

}  // namespace
}  // namespace limpid
