// Products of halves (GpuExecutor with DType::kF16): near the reference, and the same bits
// whichever of the kernels computes a token. OpenCL and the double of CUDA's driver emulate the
// fragments of tensor cores; what the hardware adds within one can only be tested where there is a
// GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "executor/op_cases.h"
#include "executor/quantized_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

class GpuTensorTest : public testing::GpuTest {
 protected:
  std::unique_ptr<GpuExecutor> make_tensor_gpu() const {
    return std::make_unique<GpuExecutor>(testing::open_gpu(GetParam()), DType::kF16);
  }
};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuTensorTest, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

// Both operands are rounded to 11 bits, so a product is off by at most 2^-11 of itself. Errors of
// many products mostly cancel; a sum of few can be that far off, and more where terms cancel.
constexpr double kTolerance = 1.5e-3;

// One token, a few, some and many run different kernels. 300 columns are not a whole number of
// chunks; 2,100 are several spans for each lane.
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
  executor.linear(executor.embed(tokens, EmbedBy::kTokenId), projections);
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

// Rows of more than 8,192 columns do not stay in the registers of `halve`.
TEST_P(GpuTensorTest, WideRowsKeepTheirBits) {
  constexpr int64_t kCols = 8232;
  const auto gpu = make_tensor_gpu();
  const auto reference = make_reference_executor({2, ""});
  const Tensor w = random_tensor(DType::kF16, 20, kCols, 1);
  const std::vector<float> values = random_floats(65 * kCols, 2);
  const std::vector<float> many = product(*gpu, w, Tensor::of({65, kCols}, values));
  const Tensor two =
      Tensor::of({2, kCols}, std::vector<float>(values.begin(), values.begin() + 2 * kCols));
  const std::vector<float> few = product(*gpu, w, two);
  EXPECT_LE(relative_error(few, product(*reference, w, two)), kTolerance);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

// Halves of narrow rows in tiles take more memory than the floats.
TEST_P(GpuTensorTest, HalvesTakeNoMemoryBeyondWhatWasReserved) {
  const auto gpu = make_tensor_gpu();
  const Tensor x = random_tensor(DType::kF32, 65, 96, 1);
  const Weight tokens = gpu->load_weight({"x", x, WeightUse::kLookup});
  const Weight weight =
      gpu->load_weight({"w", random_tensor(DType::kF16, 20, 96, 2), WeightUse::kProjection});
  gpu->reserve(65, 1);
  const size_t n_buffers = gpu->n_buffers();
  StepInputs& inputs = gpu->inputs();
  inputs.clear();
  inputs.token_ids.resize(65);
  std::iota(inputs.token_ids.begin(), inputs.token_ids.end(), 0);
  inputs.positions = inputs.sequences = inputs.token_ids;
  gpu->begin_step();
  Projection projections[] = {{weight, {}, {}}};
  gpu->linear(gpu->embed(tokens, EmbedBy::kTokenId), projections);
  gpu->end_step();
  EXPECT_EQ(gpu->n_buffers(), n_buffers);
}

// Model::read_out multiplies rows that the host wrote, in a step without tokens.
TEST_P(GpuTensorTest, ManyRowsOfTheHostNeedNoStepOfManyTokensBefore) {
  constexpr int64_t kCols = 96, kTokens = 65;
  const std::vector<float> x = random_floats(kTokens * kCols, 2);
  const Tensor w = random_tensor(DType::kF16, 20, kCols, 1);
  const auto logits = [&](Executor& executor) {
    const Weight weight = executor.load_weight({"w", w, WeightUse::kHead});
    executor.reserve(kTokens, kTokens);
    executor.inputs().clear();
    executor.begin_step();
    Projection projections[] = {{weight, {}, {}}};
    executor.linear(executor.write(x, kTokens, kCols), projections);
    executor.end_step();
    std::vector<float> y(static_cast<size_t>(kTokens * 20));
    executor.read(projections[0].y, y);
    return y;
  };
  EXPECT_LE(relative_error(logits(*make_tensor_gpu()), logits(*make_reference_executor({2, ""}))),
            kTolerance);
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

// ---- attention ----------------------------------------------------------------------------------

// q and the weights of positions are rounded to 11 bits, and so are keys and values of f32.
constexpr double kAttentionTolerance = 2e-3;

// Whole chunks of 32 elements and half ones; 16 query heads fill a fragment, 3 leave rows over.
TEST_P(GpuTensorTest, AttentionMatchesTheReference) {
  const auto gpu = make_tensor_gpu();
  const auto reference = make_reference_executor({2, ""});
  for (const AttentionCase& c :
       {AttentionCase{64, 2, 4, DType::kF16, {200, 70}},
        AttentionCase{64, 1, 16, DType::kF32, {100}}, AttentionCase{128, 1, 3, DType::kF16, {150}},
        AttentionCase{48, 2, 1, DType::kF16, {140, 5}},
        AttentionCase{32, 1, 20, DType::kF16, {70}}}) {
    EXPECT_LE(relative_error(run_attention(*gpu, c, 200), run_attention(*reference, c, 200)),
              kAttentionTolerance)
        << c.head_dim << " " << c.group;
  }
  EXPECT_EQ(gpu->n_taken(), 0U);
}

TEST_P(GpuTensorTest, AttentionGivesTheSameBitsForAnyChunkAndAmongOthers) {
  const auto gpu = make_tensor_gpu();
  const auto compare = [&](int64_t head_dim, int64_t group, DType dtype,
                           const std::vector<int64_t>& chunks) {
    const AttentionCase c{head_dim, 2, group, dtype, {150, 70}};
    const std::vector<float> whole = run_attention(*gpu, c, 150);
    for (const int64_t chunk : chunks) {
      EXPECT_EQ(whole, run_attention(*gpu, c, chunk))
          << head_dim << " " << dtype_info(dtype).name << " " << group << " " << chunk;
    }
    const std::vector<float> alone = run_attention(*gpu, {head_dim, 2, group, dtype, {150}}, 40);
    EXPECT_EQ(alone, std::vector<float>(whole.begin(), whole.begin() + std::ssize(alone)));
  };
  for (const int64_t group : {1, 3, 4, 8}) compare(64, group, DType::kF16, {1, 7, 64, 100});
  compare(64, 3, DType::kF32, {7, 100});
  compare(128, 4, DType::kF16, {7, 100});
  compare(32, 18, DType::kF16, {7, 100});
  compare(48, 8, DType::kF16, {7, 100});
}

// A few tokens of a long context share its blocks out over groups.
TEST_P(GpuTensorTest, LongContextsGiveTheSameBitsHoweverTheyAreSharedOut) {
  const auto gpu = make_tensor_gpu();
  const AttentionCase c{64, 1, 4, DType::kF16, {300, 530}};
  const std::vector<float> whole = run_attention(*gpu, c, 530);
  EXPECT_LE(relative_error(whole, run_attention(*make_reference_executor({2, ""}), c, 530)),
            kAttentionTolerance);
  for (const int64_t chunk : {5, 9, 90}) EXPECT_EQ(whole, run_attention(*gpu, c, chunk)) << chunk;
}

// What groups share takes the memory that step_bytes counts for it.
TEST_P(GpuTensorTest, TheMemoryOfSharedContextsIsCounted) {
  const auto gpu = make_tensor_gpu();
  const auto kv = gpu->allocate_kv({1, 2, 32, 16, DType::kF16, DType::kF16});
  const Tensor w = random_tensor(DType::kF16, 128, 128, 1);
  gpu->load_weight({"w", w, WeightUse::kProjection});
  StepSize size{.n_tokens = 64, .n_positions = 0, .head_dim = 0, .widest = 128};
  const uint64_t without = gpu->step_bytes(size);
  size.head_dim = 32;
  for (const int32_t n_positions : {64, 65, 1000}) {
    for (const int32_t n_tokens : {1, 16, 17}) {
      StepInputs& inputs = gpu->inputs();
      inputs.clear();
      inputs.token_ids.assign(static_cast<size_t>(n_tokens), 0);
      inputs.sequences = inputs.positions = inputs.token_ids;
      std::iota(inputs.positions.begin(), inputs.positions.end(), n_positions - n_tokens);
      gpu->begin_step();
      gpu->end_step();
    }
    size.n_positions = n_positions;
    EXPECT_EQ(gpu->parts_bytes(), gpu->step_bytes(size) - without) << n_positions;
  }
  EXPECT_EQ(gpu->parts_bytes(), 16U * 16 * (128 + 2 * 4) * sizeof(float));
}

// Of heads that fragments do not fit, or that are too wide, a step of any size is computed in f32.
TEST_P(GpuTensorTest, OtherHeadsAreAttendedToInF32) {
  const auto gpu = make_tensor_gpu();
  const auto in_f32 = make_gpu();
  for (const int64_t head_dim : {24, 144}) {
    const AttentionCase c{head_dim, 1, 3, DType::kF16, {70}};
    const std::vector<float> expected = run_attention(*in_f32, c, 70);
    for (const int64_t chunk : {1, 70}) EXPECT_EQ(run_attention(*gpu, c, chunk), expected);
  }
}

// Keys and values that a token does not see: later ones of its own step, which are not finite, and
// what a block held before.
TEST_P(GpuTensorTest, WhatIsMaskedIsNotRead) {
  constexpr int64_t kHeadDim = 64;
  constexpr int64_t kTokens = 40;
  const auto gpu = make_tensor_gpu();
  const std::vector<float> q = random_floats(kTokens * kHeadDim, 1);
  const std::vector<float> k = random_floats(kTokens * kHeadDim, 2);
  const std::vector<float> v = random_floats(kTokens * kHeadDim, 3);
  const AttentionShape shape{1, 1, kHeadDim, 0.125F};
  const auto attend = [&](KvStorage& kv, std::vector<float> keys, std::vector<float> values) {
    StepInputs& inputs = gpu->inputs();
    inputs.clear();
    inputs.token_ids.resize(kTokens);
    std::iota(inputs.token_ids.begin(), inputs.token_ids.end(), 0);
    inputs.positions = inputs.token_ids;
    inputs.sequences.assign(kTokens, 0);
    inputs.block_table = {0};
    inputs.block_table_begin = {0, 1};
    gpu->begin_step();
    const Activation y =
        gpu->attention(gpu->write(q, kTokens, kHeadDim), gpu->write(keys, kTokens, kHeadDim),
                       gpu->write(values, kTokens, kHeadDim), kv, 0, shape);
    gpu->end_step();
    std::vector<float> out(kTokens * kHeadDim);
    gpu->read(y, out);
    return out;
  };
  const auto kv = gpu->allocate_kv({1, 1, kHeadDim, 1, DType::kF16, DType::kF16});
  const std::vector<float> expected = attend(*kv, k, v);
  // From some position on, one of the two is not finite: in column 3 of V, in all of K.
  const auto spoilt = [&](const std::vector<float>& x, int64_t from, int64_t step, float by) {
    std::vector<float> y = x;
    for (int64_t i = from * kHeadDim + 3; i < kTokens * kHeadDim; i += step)
      y[static_cast<size_t>(i)] = by;
    return y;
  };
  const auto expect_rows = [&](const std::vector<float>& out, int64_t from, int64_t step) {
    for (int64_t i = 0; i < kTokens * kHeadDim; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool is_spoilt = i / kHeadDim >= from && (step == 1 || i % kHeadDim == 3);
      if (is_spoilt) {
        EXPECT_FALSE(std::isfinite(out[at])) << i;
      } else {
        EXPECT_EQ(out[at], expected[at]) << i;
      }
    }
  };
  // A large one must not cost bits of the others either.
  const std::vector<float> large = attend(*kv, k, spoilt(v, 20, kHeadDim, 6e4F));
  EXPECT_TRUE(std::equal(large.begin(), large.begin() + 20 * kHeadDim, expected.begin()));
  expect_rows(attend(*kv, k, spoilt(v, 20, kHeadDim, INFINITY)), 20, kHeadDim);
  expect_rows(attend(*kv, k, spoilt(v, 39, kHeadDim, NAN)), 39, kHeadDim);
  expect_rows(attend(*kv, spoilt(k, 25, 1, NAN), v), 25, 1);
}

}  // namespace
}  // namespace limpid
