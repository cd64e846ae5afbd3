#include "executor/cpu/kernels/lanes-inl.h"
#include "train/optimizer_kernels.h"

namespace limpid::LIMPID_ISA {
namespace {

void adamw(float* w, const float* g, float* m, float* v, int64_t n, const AdamwStep& step) {
  const F32x16 keep_first = broadcast(step.beta1);
  const F32x16 take_first = broadcast((1.0F - step.beta1) * step.gradient_scale);
  const F32x16 keep_second = broadcast(step.beta2);
  const F32x16 take_second =
      broadcast((1.0F - step.beta2) * step.gradient_scale * step.gradient_scale);
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x16 slope = load_at(g, i, n);
    const F32x16 first = fma(keep_first, load_at(m, i, n), mul(take_first, slope));
    const F32x16 second = fma(keep_second, load_at(v, i, n), mul(take_second, mul(slope, slope)));
    store_at(first, m, i, n);
    store_at(second, v, i, n);
    const F32x16 root =
        add(sqrt(mul(second, broadcast(step.second_unbiasing))), broadcast(step.epsilon));
    const F32x16 change = div(mul(first, broadcast(step.step_size)), root);
    store_at(sub(mul(load_at(w, i, n), broadcast(step.decay)), change), w, i, n);
  }
}

void sgd(float* w, const float* g, float* m, int64_t n, const SgdStep& step) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x16 slope = mul(load_at(g, i, n), broadcast(step.gradient_scale));
    const F32x16 mean = fma(load_at(m, i, n), broadcast(step.momentum), slope);
    store_at(mean, m, i, n);
    const F32x16 kept = mul(load_at(w, i, n), broadcast(step.decay));
    store_at(sub(kept, mul(mean, broadcast(step.learning_rate))), w, i, n);
  }
}

float sum_of_squares(const float* x, int64_t n) {
  F32x16 sum = zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x16 v = load_at(x, i, n);
    sum = fma(v, v, sum);
  }
  return reduce_add(sum);
}

}  // namespace

extern const OptimizerKernels kOptimizerKernels;
const OptimizerKernels kOptimizerKernels = {adamw, sgd, sum_of_squares};

}  // namespace limpid::LIMPID_ISA
