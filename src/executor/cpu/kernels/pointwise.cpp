// Ops on elements: each result depends on the same element of the operands only.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/math-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// y[i] = kFunction(x[i], …) for the elements of one or more x.
template <auto kFunction, class... Inputs>
LIMPID_INLINE void map(int64_t n, float* y, const Inputs*... x) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(kFunction(load(x + i)...), y + i);
  if (i < n) store_partial(kFunction(load_partial(x + i, n - i)...), y + i, n - i);
}

LIMPID_INLINE F32x16 gated(F32x16 gate, F32x16 up) { return mul(silu(gate), up); }

}  // namespace

void add_elements(const float* a, const float* b, int64_t n, float* y) {
  map<add<F32x16>>(n, y, a, b);
}
void scale_elements(const float* x, float factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kLanes)
    store_at(mul(load_at(x, i, n), broadcast(factor)), y, i, n);
}
void unary(UnaryKind kind, const float* x, int64_t n, float* y) {
  switch (kind) {
    case UnaryKind::kSilu:
      return map<silu>(n, y, x);
    case UnaryKind::kGeluTanh:
      return map<gelu_tanh>(n, y, x);
    case UnaryKind::kGeluErf:
      return map<gelu_erf>(n, y, x);
    case UnaryKind::kRelu:
      return map<relu>(n, y, x);
  }
}
void swiglu(const float* gate, const float* up, int64_t n, float* y) { map<gated>(n, y, gate, up); }

}  // namespace limpid::LIMPID_ISA
