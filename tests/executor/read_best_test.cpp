// The best elements of rows, on every executor, beside a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "executor/cpu/isa.h"
#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

struct Best {
  std::vector<int32_t> columns;
  std::vector<float> values;
};

Best read_best(Executor& executor, std::span<const float> values, int64_t rows, int64_t k) {
  const auto cols = static_cast<int64_t>(values.size()) / rows;
  executor.begin_step();
  const Activation x = executor.write(values, rows, cols);
  executor.end_step();
  Best best{std::vector<int32_t>(static_cast<size_t>(rows * k)),
            std::vector<float>(static_cast<size_t>(rows * k))};
  executor.read_best(x, k, best.columns, best.values);
  return best;
}

// What is not finite first, then the largest; of equal ones the lowest column.
Best sorted(std::span<const float> values, int64_t rows, int64_t k) {
  const size_t cols = values.size() / static_cast<size_t>(rows);
  Best best;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const auto of_row = values.subspan(row * cols, cols);
    std::vector<int32_t> order(cols);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      const bool a_finite = std::isfinite(of_row[a]);
      const bool b_finite = std::isfinite(of_row[b]);
      return a_finite && b_finite ? of_row[a] > of_row[b] : !a_finite && b_finite;
    });
    for (int64_t i = 0; i < k; ++i) {
      best.columns.push_back(order[i]);
      best.values.push_back(of_row[order[i]]);
    }
  }
  return best;
}

class ReadBest : public testing::ExecutorTest {};
INSTANTIATE_TEST_SUITE_P(Executors, ReadBest, ::testing::ValuesIn(testing::kExecutors),
                         testing::kNameOfApi);

TEST_P(ReadBest, IsAStableSort) {
  const auto executor = make_executor(GetParam());
  std::mt19937 random(7);
  for (const int64_t cols : {1, 2, 127, 128, 2047, 2048, 2049, 5000, 16384}) {
    for (const int64_t rows : {1, 3}) {
      std::vector<float> values(static_cast<size_t>(rows * cols));
      // Few different ones, so that many are equal; both zeros are.
      for (float& x : values) x = (static_cast<float>(random() % 400) - 200) * 0.125F;
      for (size_t i = 0; i < values.size(); i += 3) values[i] = values[i] == 0 ? -0.0F : values[i];
      for (const int64_t k : {1, 2, 40, 128, 200}) {
        if (k > cols) continue;
        const Best best = read_best(*executor, values, rows, k);
        const Best expected = sorted(values, rows, k);
        EXPECT_EQ(best.columns, expected.columns) << rows << " x " << cols << ", " << k;
        EXPECT_EQ(best.values, expected.values) << rows << " x " << cols << ", " << k;
      }
    }
  }
}

TEST_P(ReadBest, PutsWhatIsNotFiniteFirst) {
  const auto executor = make_executor(GetParam());
  std::vector<float> values(4500, -1.0F);
  values[10] = std::numeric_limits<float>::max();
  values[20] = std::numeric_limits<float>::lowest();
  values[4400] = -std::numeric_limits<float>::infinity();
  values[4300] = std::numeric_limits<float>::quiet_NaN();
  values[4350] = std::numeric_limits<float>::infinity();
  const Best best = read_best(*executor, values, 1, 6);
  EXPECT_EQ(best.columns, (std::vector<int32_t>{4300, 4350, 4400, 10, 0, 1}));
  EXPECT_TRUE(std::isnan(best.values[0]));
  EXPECT_EQ(best.values[3], std::numeric_limits<float>::max());
}

// The kernel of the CPU executor, on every instruction set.
TEST(BlockLargest, IsThatOfEachBlock) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(-5, 2);
  for (const int64_t n : {1, 15, 16, 63, 64, 65, 130, 200}) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& each : x) each = normal(random);
    std::vector<float> expected;
    for (int64_t begin = 0; begin < n; begin += kBestBlock)
      expected.push_back(
          *std::max_element(x.begin() + begin, x.begin() + std::min(begin + kBestBlock, n)));
    for (const std::string_view isa : available_isas()) {
      const Kernels& kernels = *choose_isa(isa).kernels;
      std::vector<float> largest(expected.size());
      kernels.block_largest(x.data(), n, largest.data());
      EXPECT_EQ(largest, expected) << isa << ", " << n;
      std::vector<float> damaged = x;
      damaged.back() = n % 2 == 0 ? -std::numeric_limits<float>::infinity()
                                  : std::numeric_limits<float>::quiet_NaN();
      kernels.block_largest(damaged.data(), n, largest.data());
      EXPECT_EQ(largest.back(), std::numeric_limits<float>::infinity()) << isa << ", " << n;
    }
  }
}

TEST_P(ReadBest, RefusesOtherSizes) {
  const auto executor = make_executor(GetParam());
  executor->begin_step();
  const Activation x = executor->write(std::vector<float>(6, 1.0F), 2, 3);
  executor->end_step();
  std::vector<int32_t> columns(8);
  std::vector<float> values(8);
  EXPECT_THROW(executor->read_best(x, 4, columns, values), ShapeError);
  EXPECT_THROW(executor->read_best(x, 0, {}, {}), ShapeError);
  EXPECT_THROW(executor->read_best(x, 3, columns, values), ShapeError);
}

}  // namespace
}  // namespace limpid
