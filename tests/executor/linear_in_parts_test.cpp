// A product in parts has the bits of the whole product, and each of its columns comes once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <random>

#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "executor/quantized_cases.h"
#include "limpid/error.hpp"
#include "model/decoder.h"
#include "tensor/quantize_row.h"

namespace limpid {
namespace {

constexpr int64_t kCols = 256;

std::vector<float> some_numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// Puts the parts together.
struct Assembly {
  Assembly(int64_t rows, int64_t cols)
      : values(static_cast<size_t>(rows * cols)), n_seen(static_cast<size_t>(cols)), n_rows(rows) {}

  SeePart see() {
    return [this](const ColumnPart& part) {
      const std::scoped_lock lock(mutex);
      const auto n_cols = static_cast<int64_t>(n_seen.size());
      EXPECT_EQ(part.begin % kPartColumns, 0);
      EXPECT_TRUE(part.end % kPartColumns == 0 || part.end == n_cols);
      for (int64_t j = part.begin; j < part.end; ++j) {
        ++n_seen[static_cast<size_t>(j)];
        for (int64_t i = 0; i < n_rows; ++i)
          values[static_cast<size_t>(i * n_cols + j)] =
              part.values[i * part.stride + j - part.begin];
      }
    };
  }
  bool has_each_column_once() const {
    return std::ranges::all_of(n_seen, [](int n) { return n == 1; });
  }

  std::vector<float> values;
  std::vector<int> n_seen;
  int64_t n_rows;
  std::mutex mutex;
};

Tensor plain_matrix(DType dtype, int64_t rows, int64_t cols, uint32_t seed) {
  Tensor tensor(dtype, Shape{rows, cols});
  quantize_row(dtype, some_numbers(rows * cols, seed), {}, tensor.data());
  return tensor;
}

class LinearInParts : public testing::ExecutorTest {};
INSTANTIATE_TEST_SUITE_P(Executors, LinearInParts, ::testing::ValuesIn(testing::kExecutors),
                         testing::kNameOfApi);

TEST_P(LinearInParts, HasTheBitsOfLinear) {
  const auto executor = make_executor(GetParam(), {.n_threads = 3});
  for (const int64_t n_outputs : {int64_t{40}, kPartColumns, 2 * kPartColumns + 20}) {
    for (const DType dtype :
         {DType::kF32, DType::kBF16, DType::kQ4_1, DType::kQ6_K, DType::kQ8_0}) {
      const Tensor matrix = is_quantized(dtype) ? random_quantized(dtype, n_outputs, kCols, 3)
                                                : plain_matrix(dtype, n_outputs, kCols, 3);
      const Weight weight = executor->load_weight({"w", matrix, WeightUse::kHead});
      executor->reserve(70, 70);
      for (const int64_t n_rows : {1, 5, 70}) {
        const std::vector<float> x = some_numbers(n_rows * kCols, 4);
        std::vector<float> whole(static_cast<size_t>(n_rows * n_outputs));
        Assembly parts(n_rows, n_outputs);
        const ExecutorStep step(*executor);
        const Activation input = executor->write(x, n_rows, kCols);
        std::array projections = {Projection{weight, {}, {}}};
        executor->linear(input, projections);
        executor->read(projections[0].y, whole);
        executor->linear_in_parts(input, weight, parts.see());
        EXPECT_TRUE(parts.has_each_column_once());
        EXPECT_EQ(parts.values, whole) << dtype_info(dtype).name << " " << n_rows << " rows";
      }
    }
  }
}

TEST_P(LinearInParts, WhatIsThrownReachesTheCaller) {
  const auto executor = make_executor(GetParam(), {.n_threads = 3});
  const Tensor matrix = plain_matrix(DType::kF32, 3 * kPartColumns, kCols, 3);
  const Weight weight = executor->load_weight({"w", matrix, WeightUse::kHead});
  const ExecutorStep step(*executor);
  const Activation x = executor->write(some_numbers(2 * kCols, 4), 2, kCols);
  EXPECT_THROW(
      executor->linear_in_parts(x, weight, [](const ColumnPart&) { throw ArgumentError("no"); }),
      ArgumentError);
  const Activation narrow = executor->write(some_numbers(kCols, 4), 2, kCols / 2);
  EXPECT_THROW(executor->linear_in_parts(narrow, weight, [](const ColumnPart&) {}), ShapeError);
}

// Rows that lie in two pieces of memory, the border within a part.
TEST(LinearInPartsOfCpu, ReadsRowsInSeveralPieces) {
  const auto executor = make_executor("cpu", {.n_threads = 2});
  const Tensor first = plain_matrix(DType::kF32, kPartColumns + 8, kCols, 3);
  const Tensor second = plain_matrix(DType::kF32, 500, kCols, 5);
  const int64_t n_outputs = kPartColumns + 508;
  WeightSource source{"w", {DType::kF32, Shape{n_outputs, kCols}, nullptr}, WeightUse::kHead};
  source.row_parts = {first, second};
  const Weight weight = executor->load_weight(source);
  std::vector<float> whole(static_cast<size_t>(30 * n_outputs));
  Assembly parts(30, n_outputs);
  const ExecutorStep step(*executor);
  const Activation x = executor->write(some_numbers(30 * kCols, 4), 30, kCols);
  std::array projections = {Projection{weight, {}, {}}};
  executor->linear(x, projections);
  executor->read(projections[0].y, whole);
  executor->linear_in_parts(x, weight, parts.see());
  EXPECT_TRUE(parts.has_each_column_once());
  EXPECT_EQ(parts.values, whole);
}

// An adapter of the output matrix changes logits that come in parts as it changes the others.
TEST(ReadOutInParts, HasTheLowRankUpdatesOfTheOutputMatrix) {
  const auto executor = make_executor("cpu", {.n_threads = 2});
  const int64_t n_outputs = kPartColumns + 50;
  const Tensor output = plain_matrix(DType::kF32, n_outputs, kCols, 3);
  const Tensor a = plain_matrix(DType::kF32, 4, kCols, 6);
  const Tensor b = plain_matrix(DType::kF32, n_outputs, 4, 7);
  DecoderWeights weights;
  weights.output = executor->load_weight({"w", output, WeightUse::kHead});
  LowRankUpdate update;
  update.a = executor->load_weight({"a", a, WeightUse::kProjection});
  update.b = executor->load_weight({"b", b, WeightUse::kProjection});
  update.scale = 2;
  const DecoderSpec spec;
  const std::vector<float> stream = some_numbers(3 * kCols, 4);
  const auto product = [&](const Activation& x, const Weight& weight) {
    std::array projections = {Projection{weight, {}, {}}};
    executor->linear(x, projections);
    return std::move(projections[0].y);
  };
  std::vector<float> before;
  for (const bool updated : {false, true}) {
    if (updated) weights.updates[weights.output.id] = {update};
    std::vector<float> whole(static_cast<size_t>(3 * n_outputs));
    Assembly parts(3, n_outputs);
    const ExecutorStep step(*executor);
    const Activation x = executor->write(stream, 3, kCols);
    Activation y = product(x, weights.output);
    if (updated) y = executor->add(y, executor->scale(product(product(x, update.a), update.b), 2));
    executor->read(y, whole);
    read_out(*executor, spec, weights, executor->write(stream, 3, kCols), parts.see());
    EXPECT_EQ(parts.values, whole);
    EXPECT_NE(parts.values, before);
    before = parts.values;
  }
}

}  // namespace
}  // namespace limpid
