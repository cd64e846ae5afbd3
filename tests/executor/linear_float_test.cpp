// Matrices of floats. One token may read a matrix in several ways (isa.h: weight_reading). All give
// the same bits, on every instruction set, whichever of them this CPU prefers. Products of bf16
// have the order of addition of docs/numerics.md.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "executor/cpu/cpu_executor.h"
#include "executor/executors.h"
#include "executor/op_cases.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr int64_t kScratch = 1 << 17;

// All rows of `weight` times tokens that pack_tokens() wrote.
FloatLinearTask task_of(const Tensor& weight, const std::vector<float>& packed, int64_t n_tokens,
                        std::vector<float>& scratch, std::vector<float>& y) {
  FloatLinearTask task;
  task.type = weight.dtype();
  task.weight = weight.view().data;
  task.cols = weight.shape().cols();
  task.x = packed.data();
  task.n_tokens = n_tokens;
  task.y = y.data();
  task.y_stride = task.row_end = weight.shape().rows();
  task.scratch = scratch.data();
  task.scratch_floats = std::ssize(scratch);
  return task;
}

class LinearFloat : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Isa, LinearFloat, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LinearFloat, GivesTheSameBitsHoweverWeightsAreRead) {
  const Kernels& kernels = *choose_isa(GetParam()).kernels;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {1, 15, 16, 100, 2060}) {
      constexpr int64_t kRows = 22;
      const Tensor weight = random_tensor(dtype, kRows, cols, 1);
      const std::vector<float> x = random_values(cols, 2), bias = random_values(kRows, 3);
      std::vector<float> scratch(kScratch);
      const auto read = [&](int n_streams) {
        std::vector<float> y(kRows);
        FloatLinearTask task;
        task.type = dtype;
        task.weight = weight.view().data;
        task.cols = cols;
        task.interleaved_head_dim = 2;
        task.x = x.data();
        task.n_tokens = 1;
        task.y = y.data();
        task.y_stride = kRows;
        task.bias = bias.data();
        task.scratch = scratch.data();
        task.scratch_floats = kScratch;
        task.n_streams = n_streams;
        for (const int64_t begin : {0, 9}) {  // two ranges of odd lengths
          task.row_begin = begin;
          task.row_end = begin == 0 ? 9 : kRows;
          kernels.linear_float(task);
        }
        return y;
      };
      const std::vector<float> prefetched = read(0);
      for (const int n_streams : {2, 4}) {
        EXPECT_EQ(read(n_streams), prefetched)
            << dtype_info(dtype).name << ", " << cols << " columns, " << n_streams << " streams";
      }
    }
  }
}

// Without scratch there is no panel. 4,096 floats are a panel of few rows, or none.
TEST_P(LinearFloat, GivesTheSameBitsHoweverManyRowsAPanelHas) {
  const Kernels& kernels = *choose_isa(GetParam()).kernels;
  constexpr int64_t kRows = 150, kTokens = 31;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {100, 1024, 2060}) {
      const Tensor weight = random_tensor(dtype, kRows, cols, 1);
      const std::vector<float> x = random_values(kTokens * cols, 2);
      std::vector<float> packed(packed_tokens_floats(DType::kF32, kTokens, cols)),
          scratch(kScratch);
      kernels.pack_tokens(DType::kF32, x.data(), kTokens, cols, 0, kTokens, packed.data());
      const auto multiply = [&](int64_t scratch_floats) {
        std::vector<float> y(kTokens * kRows);
        FloatLinearTask task = task_of(weight, packed, kTokens, scratch, y);
        task.scratch_floats = scratch_floats;
        kernels.linear_float(task);
        return y;
      };
      const std::vector<float> direct = multiply(0);
      for (const int64_t scratch_floats : {int64_t{4096}, int64_t{1} << 15, kScratch}) {
        EXPECT_EQ(multiply(scratch_floats), direct)
            << dtype_info(dtype).name << ", " << cols << " columns, " << scratch_floats;
      }
    }
  }
}

// y[t, r] = sum_k w[r, k] bf16(x[t, k]) + bias[r], as docs/numerics.md defines it.
std::vector<float> sums_of_pairs(const Tensor& weight, const std::vector<float>& x,
                                 const std::vector<float>& bias) {
  const int64_t rows = weight.shape().rows(), cols = weight.shape().cols();
  const auto* elements = reinterpret_cast<const uint16_t*>(weight.view().data);
  std::vector<float> y;
  for (int64_t t = 0; t < std::ssize(x) / cols; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      std::array<float, 16> lanes{};
      const auto add = [&](int64_t k, float& lane) {
        const float rounded = k < cols ? bf16_to_f32(f32_to_bf16(x[t * cols + k])) : 0;
        lane = std::fmaf(k < cols ? bf16_to_f32(elements[r * cols + k]) : 0, rounded, lane);
      };
      for (int64_t k = 0; k < cols; k += 32) {
        for (int64_t l = 0; l < 16; ++l) {
          add(k + 2 * l + 1, lanes[l]);
          add(k + 2 * l, lanes[l]);
        }
      }
      for (size_t n = 8; n > 0; n /= 2) {
        for (size_t l = 0; l < n; ++l) lanes[l] += lanes[l + n];
      }
      y.push_back(lanes[0] + bias[r]);
    }
  }
  return y;
}

TEST_P(LinearFloat, SumsPairsOfBf16InTheirOrder) {
  const Kernels& kernels = *choose_isa(GetParam()).kernels;
  constexpr int64_t kRows = 22;
  std::vector<float> scratch(kScratch);
  for (const int64_t cols : {1, 2, 15, 16, 31, 32, 100, 2060, 4128}) {
    const Tensor weight = random_tensor(DType::kBF16, kRows, cols, 1);
    const std::vector<float> bias = random_values(kRows, 3);
    for (const int64_t n_tokens : {1, 2, 5, 6, 23, 24, 31}) {
      const std::vector<float> x = random_values(n_tokens * cols, 2);
      std::vector<float> packed(packed_tokens_floats(DType::kBF16, n_tokens, cols));
      kernels.pack_tokens(DType::kBF16, x.data(), n_tokens, cols, 0, n_tokens, packed.data());
      const std::vector<float> expected = sums_of_pairs(weight, x, bias);
      for (const int n_streams : {0, 2, 4}) {
        std::vector<float> y(n_tokens * kRows);
        FloatLinearTask task = task_of(weight, packed, n_tokens, scratch, y);
        task.products = DType::kBF16;
        task.bias = bias.data();
        task.n_streams = n_streams;
        kernels.linear_float(task);
        ASSERT_EQ(y, expected) << cols << " columns, " << n_tokens << " tokens, " << n_streams
                               << " streams";
      }
    }
  }
}

// Projections of one input that are multiplied in three ways, in batches of several sizes.
TEST_P(LinearFloat, MultipliesOnlyWeightsOfBf16AsBf16) {
  const auto executor = [&](const char* products) {
    return make_cpu_executor({2, std::string(GetParam()), products});
  };
  const auto exact = executor("f32"), faster = executor("bf16");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const LinearCase c{dtype, 70, 96, 30, true, 10};
    const std::vector<float> y = run_linear(*faster, c, 30);
    for (const int64_t batch : {1, 7, 24}) EXPECT_EQ(run_linear(*faster, c, batch), y) << batch;
    const double error = relative_error(y, run_linear(*exact, c, 30));
    if (dtype == DType::kBF16) {
      EXPECT_GT(error, 1e-5);
      EXPECT_LT(error, 4e-3);
    } else {
      EXPECT_EQ(error, 0) << dtype_info(dtype).name;
    }
  }
  const Tensor tokens = random_tensor(DType::kF32, 30, 96, 1);
  std::vector<Tensor> tensors;
  for (const DType dtype : {DType::kBF16, DType::kF32, DType::kQ8_0, DType::kBF16})
    tensors.push_back(random_tensor(dtype, 40, 96, 2 + tensors.size()));
  const Weight table = load_table(*faster, tokens);
  std::vector<Projection> together;
  together.reserve(tensors.size());
  for (const Tensor& tensor : tensors)
    together.push_back({faster->load_weight({"w", tensor, WeightUse::kProjection}), {}, {}});
  faster->reserve(30, 1);
  StepInputs& inputs = faster->inputs();
  inputs.clear();
  for (int32_t t = 0; t < 30; ++t) {
    inputs.token_ids.push_back(t);
    inputs.positions.push_back(t);
    inputs.sequences.push_back(0);
  }
  const ExecutorStep step(*faster);
  const Activation x = faster->embed(table, EmbedBy::kTokenId);
  faster->linear(x, together);
  for (const Projection& p : together) {
    Projection alone{p.weight, {}, {}};
    faster->linear(x, {&alone, 1});
    EXPECT_EQ(read_values(*faster, alone.y), read_values(*faster, p.y));
  }
}

}  // namespace
}  // namespace limpid
