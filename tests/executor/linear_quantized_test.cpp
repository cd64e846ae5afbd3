#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/packed_weight.h"
#include "executor/executors.h"
#include "executor/quantized_cases.h"
#include "tensor/block_codes.h"

namespace limpid {
namespace {

using Matrix = std::vector<float>;

// ---- the definition, in plain loops: what docs/numerics.md says ---------------------------------

// 16 activations that share a scale.
struct QuantizedHalf {
  float scale;
  int q[16];
};

QuantizedHalf quantize_plainly(const float* x) {
  QuantizedHalf block{};
  float amax = 0;
  bool finite = true;
  for (int k = 0; k < 16; ++k) {
    finite = finite && std::isfinite(x[k]);
    amax = std::max(amax, std::fabs(x[k]));
  }
  if (!finite) {
    block.scale = std::numeric_limits<float>::quiet_NaN();
  } else if (amax >= 0x1p-120F) {
    block.scale = amax / 127.0F;
    const float inverse = 127.0F / amax;
    for (int k = 0; k < 16; ++k) block.q[k] = static_cast<int>(std::nearbyint(x[k] * inverse));
  }
  return block;
}

// One row times one token, columns in order.
float dot_plainly(const TensorView& weight, int64_t row, const float* x) {
  const PackedLayout layout = packed_layout(weight.dtype);
  const DTypeInfo& info = dtype_info(weight.dtype);
  float acc = 0;
  for (int64_t col = 0; col < weight.shape.cols(); col += layout.scale_cols) {
    const int64_t super_col = col / layout.cols * layout.cols;
    const int64_t n_cols = std::min<int64_t>(layout.cols, weight.shape.cols() - super_col);
    BlockCodes codes{};
    take_apart(weight.dtype)(weight.row(row) + super_col / info.block_size * info.block_bytes,
                             n_cols, codes);
    const int64_t i = (col - super_col) / layout.scale_cols;
    float scale = f16_to_f32(codes.scale[layout.scales_are_f16 ? i : 0]);
    float minimum = f16_to_f32(codes.minimum[layout.scales_are_f16 ? i : 0]);
    if (!layout.scales_are_f16) {
      scale *= static_cast<float>(layout.has_minimum ? codes.int_scale[i]
                                                     : static_cast<int8_t>(codes.int_scale[i]));
      minimum *= -static_cast<float>(codes.int_minimum[i]);
    }
    float sum = 0;
    float x_sum = 0;
    for (int64_t half = 0; half < layout.scale_cols; half += 16) {
      const QuantizedHalf x_half = quantize_plainly(x + col + half);
      int dot = 0;
      int q_sum = 0;
      for (int k = 0; k < 16; ++k) {
        const int code = codes.codes[col - super_col + half + k];
        dot += ((layout.has_levels ? kLevels[code] : code) - layout.zero) * x_half.q[k];
        q_sum += x_half.q[k];
      }
      sum = std::fma(x_half.scale, static_cast<float>(dot), sum);
      x_sum += x_half.scale * static_cast<float>(q_sum);
    }
    acc = std::fma(scale, sum, acc);
    if (layout.has_minimum) acc = std::fma(minimum, x_sum, acc);
  }
  return acc;
}

Matrix multiply_plainly(const TensorView& weight, const Matrix& x) {
  const int64_t cols = weight.shape.cols();
  const int64_t rows = weight.shape.rows();
  Matrix y;
  for (size_t at = 0; at < x.size(); at += static_cast<size_t>(cols)) {
    for (int64_t row = 0; row < rows; ++row) y.push_back(dot_plainly(weight, row, &x[at]));
  }
  return y;
}

// ---- the kernels --------------------------------------------------------------------------------

AlignedBuffer quantize(const Kernels& kernels, const Matrix& x, int64_t cols) {
  const int64_t n_tokens = static_cast<int64_t>(x.size()) / cols;
  AlignedBuffer out(static_cast<uint64_t>(quantized_activations_bytes(n_tokens, cols)));
  // In two shares, as two threads would.
  const int64_t half = n_tokens / 2 / 16 * 16;
  kernels.quantize_activations(x.data(), n_tokens, cols, 0, half, out.data());
  kernels.quantize_activations(x.data(), n_tokens, cols, half, n_tokens, out.data());
  return out;
}

Matrix multiply(std::string_view isa, const PackedWeight& weight, const Matrix& x,
                const float* bias = nullptr) {
  const Kernels& kernels = *choose_isa(isa).kernels;
  const AlignedBuffer quantized = quantize(kernels, x, weight.cols());
  LinearTask task = weight.task();
  task.n_tokens = static_cast<int64_t>(x.size()) / weight.cols();
  Matrix y(static_cast<size_t>(task.n_tokens * weight.rows()), -12345.0F);
  task.x = quantized.data();
  task.y = y.data();
  task.y_stride = weight.rows();
  task.bias = bias;
  const int64_t half = weight.n_groups() / 2;
  task.group_end = half;
  task.prefetch = false;
  kernels.linear_quantized(task);
  task.prefetch = true;
  task.group_begin = half;
  task.group_end = weight.n_groups();
  kernels.linear_quantized(task);
  return y;
}

void expect_same(const Matrix& actual, const Matrix& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << what << " at " << i;
    } else {
      ASSERT_EQ(actual[i], expected[i]) << what << " at " << i;
    }
  }
}

class LinearQuantizedOfType : public ::testing::TestWithParam<DType> {
 protected:
  int64_t block_cols() const { return dtype_info(GetParam()).block_size; }
};

TEST_P(LinearQuantizedOfType, EqualsItsDefinitionForAnyNumberOfTokens) {
  const int64_t cols = block_cols() == 32 ? 160 : 512;
  const Tensor tensor = random_quantized(GetParam(), 37, cols, 1);
  const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
  for (int64_t n_tokens = 1; n_tokens <= 18; ++n_tokens) {
    const Matrix x = random_floats(n_tokens * cols, 2);
    const Matrix expected = multiply_plainly(tensor, x);
    for (const auto isa : available_isas()) {
      expect_same(multiply(isa, weight, x), expected,
                  std::string(isa) + ", tokens " + std::to_string(n_tokens));
    }
  }
}

TEST_P(LinearQuantizedOfType, EqualsItsDefinitionForAnyShape) {
  for (const int64_t rows : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 40}) {
    for (const int64_t n_blocks : {1, 2, 3, 4}) {
      const int64_t cols = n_blocks * block_cols();
      const Tensor tensor = random_quantized(GetParam(), rows, cols, 3);
      const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
      const Matrix x = random_floats(3 * cols, 4);
      const Matrix expected = multiply_plainly(tensor, x);
      for (const auto isa : available_isas()) {
        expect_same(multiply(isa, weight, x), expected,
                    std::string(isa) + ", rows " + std::to_string(rows) + ", columns " +
                        std::to_string(cols));
      }
    }
  }
}

TEST_P(LinearQuantizedOfType, IsCloseToTheProductOfTheDecodedWeights) {
  const int64_t cols = 1024;
  const Tensor tensor = random_quantized(GetParam(), 24, cols, 5);
  const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
  const Matrix x = random_floats(2 * cols, 6);
  const std::vector<float> w = decode(tensor);
  const Matrix y = multiply("scalar", weight, x);
  for (int64_t t = 0; t < 2; ++t) {
    for (int64_t row = 0; row < 24; ++row) {
      double dot = 0;
      double magnitude = 0;
      for (int64_t k = 0; k < cols; ++k) {
        const QuantizedHalf half = quantize_plainly(&x[t * cols + k / 16 * 16]);
        const double product = static_cast<double>(w[row * cols + k]) * half.scale * half.q[k % 16];
        dot += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(y[t * 24 + row], dot, 2e-6 * magnitude) << "token " << t << ", row " << row;
    }
  }
}

TEST_P(LinearQuantizedOfType, ATokenIsTheSameInACrowd) {
  const int64_t cols = 768;
  const Tensor tensor = random_quantized(GetParam(), 48, cols, 9);
  const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
  const Matrix x = random_floats(67 * cols, 10);
  for (const auto isa : available_isas()) {
    const Matrix crowd = multiply(isa, weight, x);
    for (int64_t t = 0; t < 67; t += isa == "scalar" ? 11 : 1) {
      const Matrix alone = multiply(isa, weight, Matrix(&x[t * cols], &x[t * cols] + cols));
      expect_same(alone, Matrix(&crowd[t * 48], &crowd[t * 48] + 48),
                  std::string(isa) + ", token " + std::to_string(t));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, LinearQuantizedOfType, ::testing::ValuesIn(kQuantizedDTypes),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

TEST(LinearQuantized, AddsTheBias) {
  const Tensor tensor = random_quantized(DType::kQ4_0, 21, 64, 11);
  const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
  const Matrix x = random_floats(5 * 64, 12);
  const Matrix bias = random_floats(21, 13);
  Matrix expected = multiply_plainly(tensor, x);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % 21];
  for (const auto isa : available_isas()) {
    expect_same(multiply(isa, weight, x, bias.data()), expected, std::string(isa));
  }
}

TEST(LinearQuantized, LeavesTheRestOfARowOfResultsAlone) {
  const Tensor tensor = random_quantized(DType::kQ8_0, 19, 32, 14);
  const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
  const Matrix x = random_floats(6 * 32, 15);
  for (const auto isa : available_isas()) {
    const AlignedBuffer quantized = quantize(*choose_isa(isa).kernels, x, 32);
    Matrix y(6 * 25, 77.0F);
    LinearTask task = weight.task();
    task.n_tokens = 6;
    task.x = quantized.data();
    task.y = y.data();
    task.y_stride = 25;
    choose_isa(isa).kernels->linear_quantized(task);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i] == 77.0F, i % 25 >= 19) << isa << " at " << i;
    }
  }
}

TEST(LinearQuantized, ExactAtTheEndsOfTheRange) {
  for (const int8_t code : {int8_t{-128}, int8_t{127}}) {
    Tensor tensor(DType::kQ8_0, Shape{16, 64});
    for (uint64_t i = 0; i < tensor.view().n_bytes(); ++i) {
      tensor.data()[i] = static_cast<std::byte>(code);
    }
    const uint16_t one = f32_to_f16(1.0F);
    for (uint64_t block = 0; block < 32; ++block) std::memcpy(tensor.data() + block * 34, &one, 2);
    const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
    for (const float x : {127.0F, -127.0F}) {
      for (const auto isa : available_isas()) {
        for (const float y : multiply(isa, weight, Matrix(64, x))) {
          ASSERT_EQ(y, 64.0F * x * static_cast<float>(code)) << isa;
        }
      }
    }
  }
}

// Two of them are neighbours: a sanitizer sees it if the sum of their codes overflows.
TEST(LinearQuantized, NotANumberStaysInItsToken) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (const DType dtype : kQuantizedDTypes) {
    const Tensor tensor = random_quantized(dtype, 18, 256, 16);
    const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
    for (const float value : bad) {
      Matrix x = random_floats(7 * 256, 17);
      x[3 * 256 + 100] = x[3 * 256 + 101] = value;
      const Matrix expected = multiply_plainly(tensor, x);
      for (const auto isa : available_isas()) {
        const Matrix y = multiply(isa, weight, x);
        expect_same(y, expected, std::string(isa));
        for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 18 == 3) << isa;
      }
    }
  }
}

TEST(QuantizeActivations, RoundsToNearestEvenAndKeepsTheSums) {
  Matrix x(64, 0.0F);
  const float values[] = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, -127};
  std::memcpy(x.data(), values, sizeof(values));
  const int expected[] = {127, 0, 2, 2, 0, -2, -2, -127};
  x[20] = 3;
  x[32] = 1e-37F;  // too small for its scale to have an inverse
  for (const auto isa : available_isas()) {
    const AlignedBuffer out = quantize(*choose_isa(isa).kernels, x, 64);
    const auto* record = out.data();
    for (int k = 0; k < 8; ++k) EXPECT_EQ(static_cast<int8_t>(record[k]), expected[k]) << isa;
    EXPECT_EQ(static_cast<int8_t>(record[20]), 127) << isa;
    float floats[5];
    int32_t ints[6];
    std::memcpy(floats, record + 32, sizeof(floats));
    std::memcpy(ints, record + 52, sizeof(ints));
    const float half_scale = 3.0F / 127.0F;
    EXPECT_EQ(floats[0], 1.0F);
    EXPECT_EQ(floats[1], half_scale);
    EXPECT_EQ(floats[2], 0.0F);
    EXPECT_EQ(floats[3], half_scale * 127.0F);
    EXPECT_EQ(floats[4], half_scale * 127.0F);
    const int sums[] = {0, 127};
    for (int h = 0; h < 2; ++h) {
      EXPECT_EQ(ints[h], -8 * sums[h]);
      EXPECT_EQ(ints[2 + h], -32 * sums[h]);
      EXPECT_EQ(ints[4 + h], -128 * sums[h]);
    }
    const auto* next = record + kActivationRecord;
    std::memcpy(floats, next + 32, 4);
    EXPECT_EQ(static_cast<int8_t>(next[0]), 0);
    EXPECT_EQ(floats[0], 0.0F);
  }
}

TEST(QuantizeActivations, TilesCoverAllTokens) {
  for (int64_t n = 0; n <= 100; ++n) {
    int64_t covered = 0;
    int64_t slots = 0;
    while (covered < n) {
      const int64_t tile = token_tile(n - covered);
      covered += std::min(tile, n - covered);
      slots += tile;
    }
    EXPECT_EQ(slots, token_slots(n)) << n;
    EXPECT_LE(slots, n + 3) << n;
  }
}

}  // namespace
}  // namespace limpid
