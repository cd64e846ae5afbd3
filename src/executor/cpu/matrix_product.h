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
  PackTask left;                // but for its range and memory
  const void* right = nullptr;  // [left.depth, right_stride] of right_type
  int64_t right_stride = 0;
  int64_t cols = 0;
  float* y = nullptr;  // [left.rows, cols]; overlaps neither operand
  bool add = false;
  FloatType right_type = FloatType::kF32;
};

// Memory that a product needs: `packed` has packed_left_floats(left.rows, left.depth) floats, and
// `scratch` kMultiplyScratch floats for each thread, `scratch_step` floats apart.
struct ProductMemory {
  float* packed = nullptr;
  float* scratch = nullptr;
  int64_t scratch_step = kMultiplyScratch;
};

void multiply(const Kernels& kernels, ThreadPool& pool, const MatrixProduct& product,
              const ProductMemory& memory);

}  // namespace limpid
