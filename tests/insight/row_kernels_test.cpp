// The loops over rows beside plain ones in f64, and the same bits for every instruction set.
#include "insight/row_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "executor/executors.h"

namespace limpid {
namespace {

// Lengths with and without a last part: of 16 lanes, of a block, of what is summed at once.
constexpr int64_t kLengths[] = {1, 5, 15, 16, 17, 63, 64, 65, 79, 130, 1000, 1024, 1030, 5000};

std::vector<float> some_logits(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> normal(-3, 6);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& each : x) each = normal(random);
  return x;
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
      const ExponentialSums found =
          row_kernels(std::string(isa).c_str()).exponential_sums(x.data(), n, largest);
      EXPECT_NEAR(found.sum, sum, 2e-6 * sum) << isa << " " << n;
      EXPECT_NEAR(found.weighted, weighted, 4e-6 * (1 + std::abs(weighted))) << isa << " " << n;
      const ExponentialSums plain = row_kernels("scalar").exponential_sums(x.data(), n, largest);
      EXPECT_TRUE(found.sum == plain.sum && found.weighted == plain.weighted) << isa << " " << n;
    }
  }
}

TEST(RowKernels, MaximaOfBlocks) {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = some_logits(n);
    for (const std::string_view isa : available_isas()) {
      std::vector<float> maxima(static_cast<size_t>(block_count(n)));
      row_kernels(std::string(isa).c_str()).block_maxima(x.data(), n, maxima.data());
      for (int64_t block = 0; block < block_count(n); ++block) {
        const auto begin = x.begin() + block * kBlockNumbers;
        const auto end = x.begin() + std::min(n, (block + 1) * kBlockNumbers);
        EXPECT_EQ(maxima[static_cast<size_t>(block)], *std::max_element(begin, end)) << isa;
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
