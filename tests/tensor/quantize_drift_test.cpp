#include "tensor/quantize_drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "limpid/error.hpp"
#include "tensor/codec.h"
#include "tensor/quantize_fit.h"
#include "tensor/quantize_row.h"

namespace limpid {
namespace {

constexpr DType kTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,   DType::kQ5_1,
                            DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,   DType::kQ4_K,
                            DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS};
constexpr float kVariance = 0.5F;

std::vector<float> normal_numbers(size_t n, float mean, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, 1.0F);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> quantized(DType dtype, std::span<const float> row,
                                 const ColumnFacts& facts) {
  std::vector<std::byte> bytes(tensor_bytes(dtype, Shape{static_cast<int64_t>(row.size())}));
  quantize_row(dtype, row, facts, bytes.data());
  return bytes;
}

// What a row's error amounts to, of products with activations as the facts have them.
struct RowError {
  double drift = 0;  // e . m
  double rest = 0;   // sum of v e^2
  double whole() const { return drift * drift + rest; }
};
RowError error_of_row(DType dtype, std::span<const float> row, const ColumnFacts& facts,
                      std::span<const float> mean) {
  std::vector<float> decoded(row.size());
  decode_row(dtype, quantized(dtype, row, facts).data(), decoded);
  RowError error;
  for (size_t i = 0; i < row.size(); ++i) {
    const double lost = static_cast<double>(decoded[i]) - row[i];
    const double weight = facts.importance.empty() ? 1 : facts.importance[i];
    error.drift += lost * mean[i];
    error.rest += kVariance * weight * lost * lost;
  }
  return error;
}

class QuantizeDrift : public ::testing::TestWithParam<DType> {};

// Over rows of many blocks; the rest of the error grows by 3 % (blocks of 256) to 12 %.
TEST_P(QuantizeDrift, TheErrorLeavesTheMean) {
  const std::vector<float> mean = normal_numbers(1024, 0.2F, 1);
  double drift_without = 0;
  double drift_with = 0;
  double whole_without = 0;
  double whole_with = 0;
  double rest_without = 0;
  double rest_with = 0;
  for (unsigned seed = 2; seed < 34; ++seed) {
    const std::vector<float> row = normal_numbers(mean.size(), 0, seed);
    const RowError without = error_of_row(GetParam(), row, {}, mean);
    const RowError with =
        error_of_row(GetParam(), row, {.mean = mean, .variance = kVariance}, mean);
    drift_without += without.drift * without.drift;
    drift_with += with.drift * with.drift;
    rest_without += without.rest;
    rest_with += with.rest;
    whole_without += without.whole();
    whole_with += with.whole();
  }
  RecordProperty("drift", std::to_string(drift_with / drift_without));
  RecordProperty("rest", std::to_string(rest_with / rest_without));
  EXPECT_LT(drift_with, 0.05 * drift_without);
  EXPECT_LT(rest_with, 1.15 * rest_without);
  EXPECT_LT(whole_with, whole_without);
}

// Of a row of one block: moves never cost more than they bring.
TEST_P(QuantizeDrift, NoBlockIsWorseForIt) {
  const auto size = static_cast<size_t>(dtype_info(GetParam()).block_size);
  const std::vector<float> mean = normal_numbers(size, 0.5F, 1);
  std::vector<float> importance = normal_numbers(size, 0, 99);
  for (float& value : importance) value *= value;
  const ColumnFacts facts[] = {{}, {.importance = importance}};
  for (ColumnFacts known : facts) {
    int n_moved = 0;
    for (unsigned seed = 2; seed < 102; ++seed) {
      const std::vector<float> row = normal_numbers(size, 0, seed);
      const RowError without = error_of_row(GetParam(), row, known, mean);
      ColumnFacts all = known;
      all.mean = mean;
      all.variance = kVariance;
      const RowError with = error_of_row(GetParam(), row, all, mean);
      EXPECT_LE(with.whole(), without.whole() * (1 + 1e-5)) << seed;
      n_moved += with.whole() < without.whole() ? 1 : 0;
    }
    EXPECT_GT(n_moved, 50);
  }
}

TEST_P(QuantizeDrift, WithoutAMeanNothingMoves) {
  const std::vector<float> row = normal_numbers(512, 0, 7);
  const std::vector<float> zeros(row.size(), 0.0F);
  const std::vector<std::byte> plain = quantized(GetParam(), row, {});
  EXPECT_EQ(plain, quantized(GetParam(), row, {.variance = kVariance}));
  EXPECT_EQ(plain, quantized(GetParam(), row, {.mean = zeros, .variance = kVariance}));
}

TEST_P(QuantizeDrift, OddFactsAreNotUndefined) {
  const std::vector<float> row = normal_numbers(512, 0, 7);
  for (const float odd : {std::nanf(""), INFINITY, 3e38F, 1e-42F}) {
    const std::vector<float> mean(row.size(), odd);
    quantized(GetParam(), row, {.mean = mean, .variance = odd});
    quantized(GetParam(), mean, {.mean = mean, .variance = 0});
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantizeDrift, ::testing::ValuesIn(kTypes),
                         [](const ::testing::TestParamInfo<DType>& info) {
                           return std::string(dtype_info(info.param).name);
                         });

// Eight numbers with levels at whole numbers; the fourth and the sixth lie nearly midway.
TEST(SettleDrift, MovesWhatCostsLeast) {
  const Group<8> x[1] = {Group<8>::load(std::vector<float>{0, 1, 2, 2.49F, 3, 3.52F, 1, 2}.data())};
  const float mean[] = {1, 1, 1, 1, 1, 1, 1, 1};
  float levels[] = {0, 1, 2, 2, 3, 4, 1, 2};
  float drift = 0.5F;  // of blocks before; this one adds -0.49 + 0.48
  settle_drift<UniformLevels<0, 7>>(x, {1}, {0}, {nullptr, mean, 1, &drift}, levels);
  const float unchanged[] = {0, 1, 2, 2, 3, 4, 1, 2};
  // To 3 from 4: saves 0.49^2 - 0.51^2, costs 0.52^2 - 0.48^2, which is more.
  EXPECT_TRUE(std::equal(levels, levels + 8, unchanged));
  EXPECT_NEAR(drift, 0.49F, 1e-6F);
  drift += 0.2F;
  settle_drift<UniformLevels<0, 7>>(x, {1}, {0}, {nullptr, mean, 1, &drift}, levels);
  const float moved[] = {0, 1, 2, 2, 3, 3, 1, 2};
  EXPECT_TRUE(std::equal(levels, levels + 8, moved));
  EXPECT_NEAR(drift, 0.68F - 1, 1e-6F);
}

TEST(SettleDrift, LevelsHaveNeighboursButAtTheEnds) {
  using Even = UniformLevels<-2, 3>;
  EXPECT_EQ(Even::next(0, true), 1);
  EXPECT_EQ(Even::next(0, false), -1);
  EXPECT_EQ(Even::next(3, true), 3);
  EXPECT_EQ(Even::next(-2, false), -2);
  EXPECT_EQ(UnevenLevels::next(1, true), 13);
  EXPECT_EQ(UnevenLevels::next(1, false), -10);
  EXPECT_EQ(UnevenLevels::next(113, true), 113);
  EXPECT_EQ(UnevenLevels::next(-127, false), -127);
}

TEST(QuantizeDriftErrors, AMeanOfAnotherLengthIsRefused) {
  std::byte bytes[64];
  const std::vector<float> row(64);
  const std::vector<float> mean(32);
  EXPECT_THROW(quantize_row(DType::kQ4_0, row, {.mean = mean}, bytes), ShapeError);
}

}  // namespace
}  // namespace limpid
