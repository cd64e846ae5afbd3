// Backward of the functions of one element.
#include "executor/cpu/cpu_gradients.h"

namespace limpid {

Activation CpuGradients::unary(UnaryKind kind, const Activation& x, const Activation& dy) {
  Activation dx = like(x);
  ex_.for_rows(x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    const int64_t at = begin * x.cols();
    ex_.kernels_.unary_gradient(kind, data(x) + at, data(dy) + at, (end - begin) * x.cols(),
                                data(dx) + at);
  });
  return dx;
}

SwigluGradients CpuGradients::swiglu(const Activation& gate, const Activation& up,
                                     const Activation& dy) {
  SwigluGradients result{like(gate), like(gate)};
  ex_.for_rows(gate.rows(), gate.cols(), [&](int64_t begin, int64_t end) {
    const int64_t at = begin * gate.cols();
    ex_.kernels_.swiglu_gradient(data(gate) + at, data(up) + at, data(dy) + at,
                                 (end - begin) * gate.cols(), data(result.dgate) + at,
                                 data(result.dup) + at);
  });
  return result;
}

}  // namespace limpid
