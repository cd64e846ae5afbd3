// The registry of op cases: op x odd sizes x dtypes. What an executor does with them is compared
// with the reference executor (tolerance) and with itself on other instruction sets and numbers of
// threads (equality). A new op or executor is tested by adding to, or running, this list.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "tensor/tensor.h"

namespace limpid {

struct OpCase {
  std::string name;
  // Bound on max |y - reference| / max(|reference|, 1e-3); docs/numerics.md says where it comes
  // from.
  double tolerance;
  std::function<std::vector<float>(Executor&)> run;
};

std::vector<OpCase> op_cases();
// Those of executors that have gradient_ops().
std::vector<OpCase> gradient_cases();

std::vector<float> read_values(Executor& executor, const Activation& x);
// A table whose rows `embed` gives.
Weight load_table(Executor& executor, const Tensor& tensor);

// |y - expected| relative to the largest |expected| (at least 1e-3); infinite when one is not
// finite.
double relative_error(const std::vector<float>& y, const std::vector<float>& expected);

// `n` values from a bell of variance 1, the same for the same seed everywhere.
std::vector<float> random_values(int64_t n, uint64_t seed);

// A [rows, cols] tensor of random values in `dtype`, one that plain_blocks::encode writes.
Tensor random_tensor(DType dtype, int64_t rows, int64_t cols, uint64_t seed);

// x W^T + b for `n_tokens` random tokens that the executor gets `batch` at a time.
struct LinearCase {
  DType dtype = DType::kF32;
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t n_tokens = 1;
  bool bias = false;
  int64_t interleaved_head_dim = 0;
};
std::vector<float> run_linear(Executor& executor, const LinearCase& c, int64_t batch);

// Sequences of the given lengths, given to the executor in steps of up to `chunk` tokens of each.
struct AttentionCase {
  int64_t head_dim = 64;
  int64_t n_kv_heads = 1;
  int64_t group = 1;  // query heads per KV head
  DType dtype = DType::kF32;
  std::vector<int64_t> lengths;
};
// Outputs of all tokens of all sequences, sequence by sequence.
std::vector<float> run_attention(Executor& executor, const AttentionCase& c, int64_t chunk);

}  // namespace limpid
