// The loops over rows beside plain ones in f64, and the same bits for every instruction set.
#include "insight/row_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "executor/executors.h"

namespace limpid {
namespace {

// Lengths with and without a last part: of 16 lanes, of a block, of what is summed at once.
constexpr int64_t kLengths[] = {1,   5,   15,  16,  17,   63,   64,   65,  79,
                                130, 511, 512, 513, 1000, 1024, 1030, 5000};

std::vector<float> some_logits(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> normal(-3, 6);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& each : x) each = normal(random);
  return x;
}

// Part by part.
ExponentialSums sums_of(const std::vector<float>& x, const RowKernels& kernels) {
  std::vector<ExponentialSums> parts;
  for (int64_t begin = 0; begin < std::ssize(x); begin += kPartNumbers)
    parts.push_back(
        kernels.exponential_sums(x.data() + begin, std::min(kPartNumbers, std::ssize(x) - begin)));
  return kernels.join_sums(parts.data(), std::ssize(parts), 1);
}

TEST(RowKernels, SumsOfExponentials) {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = some_logits(n);
    const float largest = *std::ranges::max_element(x);
    double sum = 0;
    double weighted = 0;
    for (const float each : x) {
      const double below = static_cast<double>(each) - static_cast<double>(largest);
      sum += std::exp(below);
      weighted += std::exp(below) * below;
    }
    for (const std::string_view isa : available_isas()) {
      const ExponentialSums found = sums_of(x, row_kernels(std::string(isa).c_str()));
      EXPECT_EQ(found.largest, largest);
      EXPECT_NEAR(found.sum, sum, 2e-6 * sum) << isa << " " << n;
      EXPECT_NEAR(found.weighted, weighted, 4e-6 * (1 + std::abs(weighted))) << isa << " " << n;
      const ExponentialSums plain = sums_of(x, row_kernels("scalar"));
      EXPECT_TRUE(found.sum == plain.sum && found.weighted == plain.weighted) << isa << " " << n;
    }
  }
}

TEST(RowKernels, BoundsThatNumbersReach) {
  for (const int64_t n : kLengths) {
    std::vector<float> x = some_logits(n);
    std::vector<float> sorted = x;
    std::ranges::sort(sorted, std::ranges::greater());
    for (const std::string_view isa : available_isas()) {
      const RowKernels& kernels = row_kernels(std::string(isa).c_str());
      for (const int64_t k : {1, 5, 16, 17}) {
        const float bound = kernels.reached_by(x.data(), n, k);
        EXPECT_EQ(bound, row_kernels("scalar").reached_by(x.data(), n, k)) << isa;
        if (k <= n) {
          EXPECT_LE(bound, sorted[static_cast<size_t>(k) - 1]) << isa << " " << n;
        }
        if (k == 1) {
          EXPECT_EQ(bound, sorted[0]) << isa;
        }
      }
    }
  }
}

TEST(RowKernels, NumbersNotBelowABound) {
  for (const int64_t n : kLengths) {
    std::vector<float> x = some_logits(n);
    x[static_cast<size_t>(n) / 2] = std::numeric_limits<float>::quiet_NaN();
    for (const float bound : {-3.0F, -std::numeric_limits<float>::infinity()}) {
      std::vector<int32_t> expected;
      for (int32_t i = 0; i < n; ++i)
        if (!(x[static_cast<size_t>(i)] < bound)) expected.push_back(i);
      for (const std::string_view isa : available_isas()) {
        std::vector<int32_t> indices(x.size());
        indices.resize(static_cast<size_t>(
            row_kernels(std::string(isa).c_str()).not_below(x.data(), n, bound, indices.data())));
        EXPECT_EQ(indices, expected) << isa << " " << n;
      }
    }
  }
}

// Model weights may be damaged; something is kept all the same.
TEST(Ranking, KeepsAsManyWithNaN) {
  std::vector<float> x(1000, std::numeric_limits<float>::quiet_NaN());
  Ranking only(3);
  only.offer_all(x.data(), std::ssize(x), 0);
  EXPECT_EQ(only.kept().size(), 3U);
}

TEST(RowKernels, SquaresAndLargestSizes) {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = some_logits(n);
    const double sum = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    for (const std::string_view isa : available_isas()) {
      const RowKernels& kernels = row_kernels(std::string(isa).c_str());
      EXPECT_NEAR(kernels.squares(x.data(), n), sum, 2e-6 * sum) << isa;
      EXPECT_EQ(kernels.squares(x.data(), n), row_kernels("scalar").squares(x.data(), n)) << isa;
      const float most =
          std::abs(*std::ranges::max_element(x, {}, [](float each) { return std::abs(each); }));
      EXPECT_EQ(kernels.largest_size(x.data(), n), most) << isa;
      std::vector<float> largest(x.size(), 5);
      kernels.raise(x.data(), n, 3, largest.data());
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(largest[i], std::max(5.0F, 3 * std::abs(x[i])));
    }
  }
}

// Numbers of which many are equal, beside a stable sort.
TEST(Ranking, KeepsTheFirstOfASort) {
  std::mt19937 random(7);
  for (const int64_t n : kLengths) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& each : x) each = static_cast<float>(random() % 40);
    std::vector<int64_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](int64_t i) { return x[static_cast<size_t>(i)]; });
    for (const int64_t n_wanted : {0, 1, 5, 70}) {
      // The second half is offered first.
      Ranking halves(n_wanted);
      halves.offer_all(x.data() + n / 2, n - n / 2, n / 2);
      halves.offer_all(x.data(), n / 2, 0);
      Ranking whole(n_wanted);
      whole.offer_all(x.data(), n, 0);
      for (const auto& found : {whole.kept(), halves.kept()}) {
        ASSERT_EQ(std::ssize(found), std::min<int64_t>(n, n_wanted));
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].index, order[i]);
          EXPECT_EQ(found[i].value, x[static_cast<size_t>(order[i])]);
        }
      }
    }
  }
}

TEST(RowKernels, DotInDoubles) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 1e-9F};
  const std::vector<float> y = {1, 10, 100, 1000, 1, 1, 1};
  EXPECT_DOUBLE_EQ(dot_f64(x, y), 4332 + static_cast<double>(1e-9F));
}

}  // namespace
}  // namespace limpid
