// Sizes of numbers, counted by powers of two.
#include "train/value_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace limpid {
namespace {

TEST(ValueHistogram, CountsMagnitudes) {
  const std::vector<float> values = {1, -1, 1.99F, 2, -0.5F, 0.125F};
  const ValueHistogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.lowest, -3);
  EXPECT_EQ(histogram.counts, (std::vector<int64_t>{1, 0, 1, 3, 1}));
}

TEST(ValueHistogram, CountsValuesWithoutTheirScale) {
  const std::vector<float> values = {1, -1.99F, 2, 0.125F, 0};
  std::vector<float> scaled;
  for (const float value : values) scaled.push_back(std::ldexp(value, 16));
  const ValueHistogram histogram = histogram_of(scaled, 16);
  EXPECT_EQ(histogram.lowest, ValueHistogram::kLowest);  // of the zero
  EXPECT_EQ(histogram.counts, histogram_of(values).counts);
  EXPECT_EQ(histogram.counts.back(), 1);
  EXPECT_EQ(histogram_of(values, -16).counts.back(), 4);  // beyond the last bin
}

TEST(ValueHistogram, HasEndsForEverything) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0, -0.0F, 1e-40F, std::ldexp(1.0F, -40), 1e30F, -infinite};
  const ValueHistogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.lowest, ValueHistogram::kLowest);
  EXPECT_EQ(histogram.counts.size(), 50U);
  EXPECT_EQ(histogram.counts.front(), 4);
  EXPECT_EQ(histogram.counts.back(), 2);
  EXPECT_TRUE(histogram_of({}).counts.empty());
}

TEST(ValueHistogram, AddsUp) {
  ValueHistogram sum;
  add_histogram(sum, {-2, {1, 2}});
  add_histogram(sum, {-4, {5}});
  add_histogram(sum, {0, {7, 8}});
  add_histogram(sum, {});
  EXPECT_EQ(sum.lowest, -4);
  EXPECT_EQ(sum.counts, (std::vector<int64_t>{5, 0, 1, 2, 7, 8}));
}

TEST(HistogramLine, ComesBackFromItsLine) {
  HistogramLine line;
  line.step = 250;
  line.weights["a"] = {-7, {1, 2, 3}};
  line.weights["b"] = {0, {4}};
  line.gradients["a"] = {-20, {9, 0, 1}};
  const std::string text = to_json_line(line);
  EXPECT_EQ(text,
            R"({"step":250,"weights":{"a":[-7,1,2,3],"b":[0,4]},"gradients":{"a":[-20,9,0,1]}})");
  const HistogramLine read = histogram_line(nlohmann::json::parse(text));
  EXPECT_EQ(to_json_line(read), text);
}

}  // namespace
}  // namespace limpid
