// Products of f32 matrices in plain rows, by the threads of a pool: what the backward pass and
// optimizers multiply with.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "executor/cpu/kernels.h"

namespace limpid {

// y = left * right, or y += left * right. Every element of y is one chain of multiply-adds in order
// of the depth, so the result has the same bits for any number of threads and instruction set.
struct MatrixProduct {
  PackTask left;                // packed by `pack`
  const void* right = nullptr;  // [left.depth, right_stride], or transposed: [cols, right_stride]
  int64_t right_stride = 0;
  int64_t cols = 0;
  float* y = nullptr;  // [left.rows, cols]; overlaps neither operand
  bool add = false;
  FloatType right_type = FloatType::kF32;
  bool right_transposed = false;
  const float* bias = nullptr;  // [cols], or null: added to every row, unless `add`
};

// Packs a left operand, but for its range, to `left.packed`, for any number of products.
void pack(const Kernels& kernels, ThreadPool& pool, const PackTask& left);

// `scratch` has kMultiplyScratch floats for each thread, `scratch_step` floats apart.
void multiply(const Kernels& kernels, ThreadPool& pool, const MatrixProduct& product,
              float* scratch, int64_t scratch_step = kMultiplyScratch);

}  // namespace limpid
