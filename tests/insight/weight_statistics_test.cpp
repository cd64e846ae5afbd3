#include "insight/weight_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace limpid {
namespace {

// A product of a known spectrum: rotations do not change singular values, so each pair of rows and
// of columns of a diagonal matrix is rotated by some angle.
std::vector<float> with_spectrum(const std::vector<double>& spectrum, size_t n_rows,
                                 size_t n_cols) {
  std::vector<double> w(n_rows * n_cols);
  for (size_t i = 0; i < spectrum.size(); ++i) w[i * n_cols + i] = spectrum[i];
  std::mt19937 random(5);
  for (int turn = 0; turn < 2000; ++turn) {
    const double angle = random() % 628 / 100.0;
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const bool rows = turn % 2 == 0;
    const size_t n = rows ? n_rows : n_cols;
    const size_t a = random() % n;
    const size_t b = (a + 1 + random() % (n - 1)) % n;
    for (size_t i = 0; i < (rows ? n_cols : n_rows); ++i) {
      double& x = rows ? w[a * n_cols + i] : w[i * n_cols + a];
      double& y = rows ? w[b * n_cols + i] : w[i * n_cols + b];
      const double old = x;
      x = c * old - s * y;
      y = s * old + c * y;
    }
  }
  return {w.begin(), w.end()};
}

TEST(WeightStatistics, FindsTheSingularValues) {
  ThreadPool pool(2);
  const std::vector<double> spectrum = {9, 7, 5, 3, 2, 1, 0.5, 0.25, 0.2, 0.1};
  for (const auto& [n_rows, n_cols] : {std::pair<size_t, size_t>{40, 20}, {20, 40}, {30, 30}}) {
    const std::vector<float> w = with_spectrum(spectrum, n_rows, n_cols);
    const WeightStatistics found =
        weight_statistics(w, static_cast<int64_t>(n_rows), static_cast<int64_t>(n_cols), 4, pool);
    ASSERT_EQ(found.singular_values.size(), 4U);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found.singular_values[i], spectrum[i], 1e-4);
    const double squares =
        std::inner_product(spectrum.begin(), spectrum.end(), spectrum.begin(), 0.0);
    EXPECT_NEAR(found.stable_rank, squares / 81, 1e-4);
  }
}

TEST(WeightStatistics, OfSmallTensors) {
  ThreadPool pool(1);
  const std::vector<float> vector = {3, -1, -1, 3};
  const WeightStatistics of_vector = weight_statistics(vector, 1, 4, 3, pool);
  EXPECT_TRUE(of_vector.singular_values.empty());
  EXPECT_DOUBLE_EQ(of_vector.mean, 1);
  EXPECT_DOUBLE_EQ(of_vector.root_mean_square, std::sqrt(5));
  EXPECT_DOUBLE_EQ(of_vector.largest, 3);
  EXPECT_EQ(of_vector.histogram[12 + 4], 2);  // 3 / sqrt(5) = 1.34 of 4, a third of the way
  EXPECT_EQ(of_vector.histogram[12 - 2], 2);
  const std::vector<float> zeros(12);
  EXPECT_TRUE(weight_statistics(zeros, 3, 4, 3, pool).singular_values.empty());
  // Of rank 1: the other values are zero.
  const std::vector<float> rank_one = {1, 2, 2, 4, 3, 6};
  const WeightStatistics of_rank_one = weight_statistics(rank_one, 3, 2, 3, pool);
  ASSERT_EQ(of_rank_one.singular_values.size(), 2U);
  EXPECT_NEAR(of_rank_one.singular_values[0], std::sqrt(70), 1e-5);
  EXPECT_NEAR(of_rank_one.singular_values[1], 0, 1e-4);
  EXPECT_NEAR(of_rank_one.stable_rank, 1, 1e-5);
}

TEST(RelativeDifference, IsAShareOfTheFirst) {
  const std::vector<float> a = {3, 4};
  const std::vector<float> b = {3, 5};
  EXPECT_DOUBLE_EQ(relative_difference(a, b), 0.2);
  EXPECT_EQ(relative_difference(a, a), 0);
}

TEST(WeightStatistics, AnInfiniteWeightIsOutermost) {
  ThreadPool pool(1);
  const std::vector<float> values = {0, 1, INFINITY};
  EXPECT_EQ(weight_statistics(values, 1, 3, 3, pool).histogram.back(), 1);
}

// Their products are beyond f32, and singular values of 0 would be wrong.
TEST(WeightStatistics, HugeWeightsHaveNoSingularValues) {
  ThreadPool pool(1);
  const std::vector<float> huge(20 * 30, 3e38F);
  EXPECT_TRUE(weight_statistics(huge, 20, 30, 3, pool).singular_values.empty());
  const std::vector<float> large(20 * 30, 1e37F);
  EXPECT_NEAR(weight_statistics(large, 20, 30, 3, pool).singular_values[0] / 1e37, std::sqrt(600),
              1e-3);
}

}  // namespace
}  // namespace limpid
