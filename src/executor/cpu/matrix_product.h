// Products of f32 matrices in plain rows, by the threads of a pool. Linear layers in training
// (forward and backward), the optimizer Muon and src/insight use them.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "executor/cpu/kernels.h"

namespace limpid {

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
