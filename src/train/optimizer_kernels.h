// The loops of the optimizers that are compiled once per instruction set. Each element depends on
// the same element of the operands only, so results have the same bits everywhere.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace limpid {

// One step of AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2) for a weight w with
// gradient g:
//   g = gradient_scale * g
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   w = decay * w - step_size * m / (sqrt(v * second_unbiasing) + epsilon)
// m and v are running means of the gradient and of its square. Both start at 0 and are too small in
// the first steps, by the factors 1 - beta1^t and 1 - beta2^t; step_size and second_unbiasing
// correct this.
struct AdamwStep {
  float gradient_scale = 1;  // of clipping
  float beta1 = 0;
  float beta2 = 0;
  float step_size = 0;         // learning rate / (1 - beta1^t)
  float second_unbiasing = 1;  // 1 / (1 - beta2^t)
  float epsilon = 0;
  float decay = 1;  // 1 - learning rate * weight decay
};

// Stochastic gradient descent with momentum (as in PyTorch):
//   m = momentum * m + gradient_scale * g      w = decay * w - learning_rate * m
struct SgdStep {
  float gradient_scale = 1;
  float momentum = 0;
  float learning_rate = 0;
  float decay = 1;
};

struct OptimizerKernels {
  void (*adamw)(float* w, const float* g, float* m, float* v, int64_t n, const AdamwStep& step);
  void (*sgd)(float* w, const float* g, float* m, int64_t n, const SgdStep& step);
  // Returns the sum of the squares of up to kSquaresAtOnce elements; more would lose digits.
  float (*sum_of_squares)(const float* x, int64_t n);
};
inline constexpr int64_t kSquaresAtOnce = 4096;

// Returns the kernels of the instruction set `isa`; "": the set that choose_isa("") chooses.
const OptimizerKernels& optimizer_kernels(const char* isa = "");

// Returns the sum of squares in f64. The sums of blocks of kSquaresAtOnce elements are added in
// order, so the bits are the same for any number of threads.
double sum_of_squares(std::span<const float> x, const OptimizerKernels& kernels, ThreadPool& pool);

}  // namespace limpid
