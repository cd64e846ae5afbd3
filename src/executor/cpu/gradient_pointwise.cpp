// Backward of the functions of one element; dropout and numbers in 16 bits.
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

// Integers and one product for each element have the same bits everywhere, so no kernel is needed.
Activation CpuGradients::dropout(const Activation& x, const Dropout& dropout) {
  Activation y = like(x);
  ex_.for_rows(x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* from = data(x) + t * x.cols();
      float* to = data(y) + t * x.cols();
      dropout_factors(dropout, t, 0, x.cols(), to);
      for (int64_t i = 0; i < x.cols(); ++i) to[i] *= from[i];
    }
  });
  return y;
}

// Two numbers of a row in the place of one.
Activation CpuGradients::narrow(const Activation& x, DType dtype) {
  Activation y = ex_.allocate(x.rows(), (x.cols() + 1) / 2);
  ex_.for_rows(x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      ex_.kernels_.narrow(dtype, data(x) + t * x.cols(), x.cols(),
                          reinterpret_cast<uint16_t*>(data(y) + t * y.cols()));
    }
  });
  return y;
}

Activation CpuGradients::widen(const Activation& narrow, int64_t cols, DType dtype) {
  Activation y = ex_.allocate(narrow.rows(), cols);
  ex_.for_rows(y.rows(), cols, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      ex_.kernels_.widen(dtype, reinterpret_cast<const uint16_t*>(data(narrow) + t * narrow.cols()),
                         cols, data(y) + t * cols);
    }
  });
  return y;
}

}  // namespace limpid
