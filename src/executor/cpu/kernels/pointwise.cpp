// Ops on elements: each result depends on the same element of the operands only.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/math-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

template <class Function>
LIMPID_INLINE void map(const float* x, int64_t n, float* y, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(function(load(x + i)), y + i);
  if (i < n) store_partial(function(load_partial(x + i, n - i)), y + i, n - i);
}

template <class Function>
LIMPID_INLINE void map2(const float* a, const float* b, int64_t n, float* y, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(function(load(a + i), load(b + i)), y + i);
  if (i < n) {
    store_partial(function(load_partial(a + i, n - i), load_partial(b + i, n - i)), y + i, n - i);
  }
}

}  // namespace

void add_elements(const float* a, const float* b, int64_t n, float* y) {
  map2(
      a, b, n, y, [](F32x16 p, F32x16 q) __attribute__((always_inline)) { return add(p, q); });
}
void scale_elements(const float* x, float factor, int64_t n, float* y) {
  map(
      x, n,
      y, [factor](F32x16 v) __attribute__((always_inline)) { return mul(v, broadcast(factor)); });
}
void unary(UnaryKind kind, const float* x, int64_t n, float* y) {
  switch (kind) {
    case UnaryKind::kSilu:
      return map(
          x, n, y, [](F32x16 v) __attribute__((always_inline)) { return silu(v); });
    case UnaryKind::kGeluTanh:
      return map(
          x, n, y, [](F32x16 v) __attribute__((always_inline)) { return gelu_tanh(v); });
    case UnaryKind::kGeluErf:
      return map(
          x, n, y, [](F32x16 v) __attribute__((always_inline)) { return gelu_erf(v); });
    case UnaryKind::kRelu:
      return map(
          x, n, y, [](F32x16 v) __attribute__((always_inline)) { return relu(v); });
  }
}
void swiglu(const float* gate, const float* up, int64_t n, float* y) {
  map2(
      gate, up, n, y,
      [](F32x16 g, F32x16 u) __attribute__((always_inline)) { return mul(silu(g), u); });
}

}  // namespace limpid::LIMPID_ISA
