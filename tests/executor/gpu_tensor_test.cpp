// Products of halves (GpuExecutor::Products::kF16): near the reference, and the same bits whichever
// of the kernels computes a token. OpenCL and the double of CUDA's driver emulate the fragments of
// tensor cores; what the hardware adds within one can only be tested where there is a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/executors.h"
#include "executor/gpu/gpu_devices.h"
#include "executor/gpu_devices.h"
#include "executor/op_cases.h"
#include "executor/quantized_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

class GpuTensorTest : public testing::GpuTest {
 protected:
  std::unique_ptr<GpuExecutor> make_tensor_gpu() const {
    return std::make_unique<GpuExecutor>(testing::open_gpu(GetParam()),
                                         GpuExecutor::Products::kF16);
  }
};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuTensorTest, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

// Both operands are rounded to 11 bits, so a product is off by at most 2^-11 of itself. Errors of
// many products mostly cancel; a sum of few can be that far off, and more where terms cancel.
constexpr double kTolerance = 1.5e-3;

// One token, a few, some and many run different kernels. 300 columns are no whole chunks, 2,100 are
// several spans for each lane.
TEST_P(GpuTensorTest, PlainMatricesMatchTheReferenceWithTheSameBitsInAnyBatch) {
  const auto gpu = make_tensor_gpu();
  const auto reference = make_reference_executor({2, ""});
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {33, 300, 2100}) {
      const LinearCase c{dtype, 150, cols, 140, true, 0};
      const std::vector<float> whole = run_linear(*gpu, c, 140);
      EXPECT_LE(relative_error(whole, run_linear(*reference, c, 140)), kTolerance)
          << dtype_info(dtype).name << " " << cols;
      for (const int64_t batch : {1, 8, 9, 64, 65}) {
        EXPECT_EQ(whole, run_linear(*gpu, c, batch))
            << dtype_info(dtype).name << " " << cols << " " << batch;
      }
    }
  }
  EXPECT_EQ(gpu->n_taken(), 0U);
}

// The product of a matrix with `x`, in one step.
std::vector<float> product(Executor& executor, const Tensor& w, const Tensor& x) {
  const int64_t n_tokens = x.shape().rows();
  const Weight weight = executor.load_weight({"w", w, WeightUse::kProjection});
  const Weight tokens = executor.load_weight({"x", x, WeightUse::kLookup});
  executor.reserve(n_tokens, 1);
  StepInputs& inputs = executor.inputs();
  inputs.clear();
  inputs.token_ids.resize(static_cast<size_t>(n_tokens));
  std::iota(inputs.token_ids.begin(), inputs.token_ids.end(), 0);
  inputs.positions = inputs.sequences = inputs.token_ids;
  executor.begin_step();
  Projection projections[] = {{weight, {}, {}}};
  executor.linear(executor.embed(tokens), projections);
  executor.end_step();
  std::vector<float> y(static_cast<size_t>(n_tokens * w.shape().rows()));
  executor.read(projections[0].y, y);
  return y;
}

TEST_P(GpuTensorTest, QuantizedMatricesMatchTheReferenceWithTheSameBitsInAnyBatch) {
  constexpr int64_t kCols = 1536;
  const auto gpu = make_tensor_gpu();
  const auto reference = make_reference_executor({2, ""});
  const std::vector<float> values = random_floats(66 * kCols, 2);
  const auto first = [&](int64_t n) {
    return Tensor::of({n, kCols}, std::vector<float>(values.begin(), values.begin() + n * kCols));
  };
  // Others differ only in how they are decoded, which GpuTypes tests.
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_K}) {
    const Tensor w = random_quantized(dtype, 70, kCols, 1);
    const std::vector<float> many = product(*gpu, w, first(66));
    EXPECT_LE(relative_error(many, product(*reference, w, first(66))), kTolerance)
        << dtype_info(dtype).name;
    for (const int64_t n : {1, 30}) {
      const std::vector<float> few = product(*gpu, w, first(n));
      EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << dtype_info(dtype).name << n;
    }
  }
}

// A row of x is scaled by itself, so neither large nor small elements leave the range of halves,
// and a token does not touch its neighbours.
TEST_P(GpuTensorTest, RowsOfAnySizeKeepTheirBits) {
  constexpr int64_t kCols = 96;
  const auto gpu = make_tensor_gpu();
  const Tensor w = random_tensor(DType::kF16, 20, kCols, 1);
  const std::vector<float> one = random_floats(kCols, 2);
  std::vector<float> rows;
  const std::vector<int> powers = {0, 60, -60, 110, -90, 1};
  for (const int power : powers) {
    for (const float x : one) rows.push_back(std::ldexp(x, power));
  }
  rows.insert(rows.end(), kCols, 0.0F);
  rows.insert(rows.end(), one.begin(), one.end());
  rows.back() = INFINITY;
  rows.insert(rows.end(), one.begin(), one.end());
  rows.back() = NAN;
  const auto n = static_cast<int64_t>(powers.size());
  const std::vector<float> y = product(*gpu, w, Tensor::of({n + 3, kCols}, rows));
  for (size_t r = 0; r < 20; ++r) {
    for (size_t i = 0; i < powers.size(); ++i)
      EXPECT_EQ(y[20 * i + r], std::ldexp(y[r], powers[i])) << powers[i];
    EXPECT_EQ(y[20 * static_cast<size_t>(n) + r], 0.0F);
    EXPECT_FALSE(std::isfinite(y[20 * static_cast<size_t>(n + 1) + r]));
    EXPECT_TRUE(std::isnan(y[20 * static_cast<size_t>(n + 2) + r]));
  }
}

TEST(GpuProducts, UnknownOnesAreRefused) {
  EXPECT_THROW(make_gpu_executor("opencl", "f8"), ArgumentError);
}

}  // namespace
}  // namespace limpid
