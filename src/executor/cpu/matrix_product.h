// Products of f32 matrices in plain rows, by the threads of a pool. Linear layers in training
// (forward and backward), the optimizer Muon and src/insight use them.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "executor/cpu/kernels.h"

namespace limpid {

// Element (m, k) is x[m * stride + k], or x[k * stride + m] when `transposed`.
struct LeftMatrix {
  const float* x = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  bool transposed = false;
};

// y = left * right, or y += left * right.
struct MatrixProduct {
  const void* right = nullptr;  // [left.depth, right_stride], or transposed: [cols, right_stride]
  int64_t right_stride = 0;
  int64_t cols = 0;
  float* y = nullptr;  // [left.rows, cols]; overlaps neither operand
  bool add = false;
  FloatType right_type = FloatType::kF32;
  bool right_transposed = false;
  const float* bias = nullptr;  // [cols], or null: added to every row, unless `add`
};

// The left operand is packed by parts of so many floats: about 1 MiB, which stay in the L2 cache of
// a core.
inline constexpr int64_t kLeftPartFloats = 44 * kLeftRowGrain * kMultiplyDepth;

constexpr int64_t multiply_scratch_floats(int n_threads) {
  return n_threads * (kLeftPartFloats + kMultiplyScratch);
}

// All products of one left operand. Every element of y is a sum of chains of multiply-adds, one for
// each kMultiplyDepth steps of the depth, in order, so it has the same bits for any number of
// threads and instruction set. `scratch` has multiply_scratch_floats(pool.size()) floats.
void multiply(const Kernels& kernels, ThreadPool& pool, const LeftMatrix& left,
              std::span<const MatrixProduct> products, float* scratch);

}  // namespace limpid
