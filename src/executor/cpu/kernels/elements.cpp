// Ops on elements: each result depends on the same element of the operands only.
#include "executor/cpu/kernels/kernels-inl.h"
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
void unary_silu(const float* x, int64_t n, float* y) {
  map(
      x, n, y, [](F32x16 v) __attribute__((always_inline)) { return silu(v); });
}
void unary_gelu_tanh(const float* x, int64_t n, float* y) {
  map(
      x, n, y, [](F32x16 v) __attribute__((always_inline)) { return gelu_tanh(v); });
}
void unary_gelu_erf(const float* x, int64_t n, float* y) {
  map(
      x, n, y, [](F32x16 v) __attribute__((always_inline)) { return gelu_erf(v); });
}
void unary_relu(const float* x, int64_t n, float* y) {
  map(
      x, n, y, [](F32x16 v) __attribute__((always_inline)) { return relu(v); });
}
void unary_exp(const float* x, int64_t n, float* y) {
  map(
      x, n, y, [](F32x16 v) __attribute__((always_inline)) { return exp(v); });
}
void swiglu(const float* gate, const float* up, int64_t n, float* y) {
  map2(
      gate, up, n, y,
      [](F32x16 g, F32x16 u) __attribute__((always_inline)) { return mul(silu(g), u); });
}

void narrow_to_f16(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_f16(load(x + i), y + i);
  if (i < n) store_f16_partial(load_partial(x + i, n - i), y + i, n - i);
}
void widen_f16(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load_f16(x + i), y + i);
  if (i < n) store_partial(load_f16_partial(x + i, n - i), y + i, n - i);
}
void widen_bf16(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load_bf16(x + i), y + i);
  if (i < n) store_partial(load_bf16_partial(x + i, n - i), y + i, n - i);
}

void lanes_probe(const float* a, const float* b, const float* c, float* out) {
  const F32x16 x = load(a), y = load(b), z = load(c);
  uint16_t halves[kLanes];
  store_f16(x, halves);
  const F32x16 results[kLanesProbeResults] = {
      max(x, y),
      min(x, y),
      add(x, y),
      sub(x, y),
      mul(x, y),
      div(x, y),
      fma(x, y, z),
      sqrt(x),
      abs(x),
      copy_sign(x, y),
      select_less(x, y, y, z),
      load_f16(halves),
      load_f16_partial(halves, 11),
      broadcast(reduce_add(x)),
      to_float(to_int(min(max(x, broadcast(-1e6F)), broadcast(1e6F)))),
  };
  for (int i = 0; i < kLanesProbeResults; ++i) store(results[i], out + i * kLanes);
}

}  // namespace limpid::LIMPID_ISA
