// Gradients of the functions of one element (silu, gelu, relu), and the exponentials of a softmax.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/math-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

LIMPID_INLINE F32x16 logistic(F32x16 x) {
  return div(broadcast(1.0F), add(broadcast(1.0F), exp(negate(x))));
}

// s + x s (1 - s)
LIMPID_INLINE F32x16 silu_derivative(F32x16 x) {
  const F32x16 s = logistic(x);
  return fma(mul(x, s), sub(broadcast(1.0F), s), s);
}

// gelu_tanh is x s(2u) with u = sqrt(2/pi) (x + 0.044715 x^3): s + x s (1 - s) 2u'. Beyond |x| = 15
// the second term is 0, but a very large x would compute it as 0 * infinity; so x is limited.
LIMPID_INLINE F32x16 gelu_tanh_derivative(F32x16 x) {
  x = min(broadcast(15.0F), max(broadcast(-15.0F), x));
  const F32x16 square = mul(x, x);
  const F32x16 root = broadcast(1.5957691216F);  // 2 sqrt(2/pi)
  const F32x16 s = logistic(mul(root, fma(mul(square, broadcast(0.044715F)), x, x)));
  const F32x16 slope = mul(root, fma(square, broadcast(0.134145F), broadcast(1.0F)));
  return fma(mul(mul(x, s), sub(broadcast(1.0F), s)), slope, s);
}

// Phi(x) + x e^(-x^2 / 2) / sqrt(2 pi)
LIMPID_INLINE F32x16 gelu_erf_derivative(F32x16 x) {
  const F32x16 tail = normal_tail(min(broadcast(15.0F), abs(x)));
  const F32x16 phi = select_less(x, zero(), tail, sub(broadcast(1.0F), tail));
  const F32x16 near = min(broadcast(15.0F), max(broadcast(-15.0F), x));
  const F32x16 density = mul(exp(mul(mul(near, near), broadcast(-0.5F))), broadcast(0.3989422804F));
  return fma(near, density, phi);
}

LIMPID_INLINE F32x16 relu_derivative(F32x16 x) {
  return select_less(zero(), x, broadcast(1.0F), zero());
}

template <auto kDerivative>
LIMPID_INLINE void times(const float* x, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kLanes)
    store_at(mul(load_at(dy, i, n), kDerivative(load_at(x, i, n))), dx, i, n);
}

}  // namespace

void unary_gradient(UnaryKind kind, const float* x, const float* dy, int64_t n, float* dx) {
  switch (kind) {
    case UnaryKind::kSilu:
      return times<silu_derivative>(x, dy, n, dx);
    case UnaryKind::kGeluTanh:
      return times<gelu_tanh_derivative>(x, dy, n, dx);
    case UnaryKind::kGeluErf:
      return times<gelu_erf_derivative>(x, dy, n, dx);
    case UnaryKind::kRelu:
      return times<relu_derivative>(x, dy, n, dx);
  }
}

void swiglu_gradient(const float* gate, const float* up, const float* dy, int64_t n, float* dgate,
                     float* dup) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x16 g = load_at(gate, i, n);
    const F32x16 d = load_at(dy, i, n);
    store_at(mul(mul(d, load_at(up, i, n)), silu_derivative(g)), dgate, i, n);
    store_at(mul(d, silu(g)), dup, i, n);
  }
}

// x becomes exp(scale * x - largest), in place (kernel_list.h). A lane that added its share of
// 128,256 numbers to one sum would round 8,016 times, which could cost half of f32's digits, and
// the loss that is printed contains the logarithm of the sum. So each kChain numbers are summed
// alone, 64 a lane, and then their sums.
SoftmaxSums exponentials(float* x, int64_t n, float scale) {
  constexpr int64_t kChain = 64 * kLanes;
  float largest = x[0];
  F32x16 largest_lanes = broadcast(largest);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) largest_lanes = max(load(x + i), largest_lanes);
  largest = reduce_max(largest_lanes);
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  largest *= scale;
  const auto exponential = [&](F32x16 v) __attribute__((always_inline)) {
    return exp(fma(v, broadcast(scale), broadcast(-largest)));
  };
  F32x16 total = zero();
  for (int64_t begin = 0; begin < n; begin += kChain) {
    const int64_t end = begin + kChain < n ? begin + kChain : n;
    F32x16 sum = zero();
    for (i = begin; i + kLanes <= end; i += kLanes) {
      const F32x16 y = exponential(load(x + i));
      store(y, x + i);
      sum = add(sum, y);
    }
    if (i < end) {
      store_partial(exponential(load_partial(x + i, end - i)), x + i, end - i);
      sum = add(sum, load_partial(x + i, end - i));  // lanes beyond the end are 0
    }
    total = add(total, sum);
  }
  return {largest, reduce_add(total)};
}

}  // namespace limpid::LIMPID_ISA
