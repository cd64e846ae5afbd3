#include "insight/rope_chart.h"

#include <gtest/gtest.h>

#include <sstream>

#include "layouts/rope_scaling.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

// The points of the line with that id.
std::vector<std::pair<double, double>> points_of(const std::string& svg, const std::string& id) {
  const size_t line = svg.find("<polyline id='" + id + "' points='");
  const size_t begin = svg.find("points='", line) + 8;
  std::istringstream text(svg.substr(begin, svg.find('\'', begin) - begin));
  std::vector<std::pair<double, double>> points;
  double x = 0;
  double y = 0;
  char comma = 0;
  while (text >> x >> comma >> y) points.emplace_back(x, y);
  return points;
}

DecoderSpec spec_with(const char* scaling) {
  const auto checkpoint = testing::tiny_checkpoint();
  override_rope_scaling(*checkpoint, parse_rope_scaling(scaling));
  return read_spec(*checkpoint);
}

TEST(RopeChart, DrawsBothLines) {
  const std::string svg = rope_chart(spec_with("linear:10"));
  const auto before = points_of(svg, "before");
  const auto after = points_of(svg, "after");
  ASSERT_EQ(before.size(), 8U);
  ASSERT_EQ(after.size(), 8U);
  const double decade = before[0].second - after[0].second;  // ten times as long a wave
  EXPECT_GT(decade, 10);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].first, after[i].first);
    EXPECT_NEAR(before[i].second - after[i].second, decade, 0.02) << i;
    EXPECT_TRUE(i == 0 || before[i].second < before[i - 1].second);
  }
  EXPECT_NE(svg.find("scaling linear"), std::string::npos);
}

TEST(RopeChart, LinesOfLlama3PartAtTheSlowEnd) {
  const std::string svg = rope_chart(spec_with("llama3:8,1,4,64"));
  const auto before = points_of(svg, "before");
  const auto after = points_of(svg, "after");
  EXPECT_EQ(before.front(), after.front());
  EXPECT_GT(before.back().second, after.back().second + 5);
  EXPECT_EQ(points_of(rope_chart(spec_with("none")), "before"),
            points_of(rope_chart(spec_with("none")), "after"));
}

// A divisor of infinity in rope_freqs.weight leaves a pair with frequency 0.
TEST(RopeChart, LeavesOutPairsThatNeverTurn) {
  DecoderSpec spec = spec_with("linear:10");
  spec.rope.inverse_frequencies.back() = 0;
  const std::string svg = rope_chart(spec);
  EXPECT_EQ(points_of(svg, "before").size(), 8U);
  EXPECT_EQ(points_of(svg, "after").size(), 7U);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(RopeChart, RefusesLearnedPositions) {
  EXPECT_THROW(rope_chart(read_spec(*testing::tiny_checkpoint(testing::tiny_gpt2_shape()))),
               UnsupportedError);
}

}  // namespace
}  // namespace limpid
