// Ops on elements: each result depends on the same element of the operands only.
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

template <class Body>
Activation CpuExecutor::elementwise(const Activation& x, Body body) {
  Activation y = allocate(x.rows(), x.cols());
  float* out = data(y);
  for_rows(x.rows() * x.cols(), 1,
           [&](int64_t begin, int64_t end) { body(begin, end - begin, out + begin); });
  return y;
}

Activation CpuExecutor::add(const Activation& a, const Activation& b) {
  check_same_shape("add", a, b);
  return elementwise(a, [p = data(a), q = data(b), this](int64_t i, int64_t n, float* y) {
    kernels_.add_elements(p + i, q + i, n, y);
  });
}

Activation CpuExecutor::scale(const Activation& x, float factor) {
  return elementwise(x, [p = data(x), factor, this](int64_t i, int64_t n, float* y) {
    kernels_.scale_elements(p + i, factor, n, y);
  });
}

Activation CpuExecutor::unary(UnaryKind kind, const Activation& x) {
  return elementwise(x, [p = data(x), kind, this](int64_t i, int64_t n, float* y) {
    kernels_.unary(kind, p + i, n, y);
  });
}

Activation CpuExecutor::swiglu(const Activation& gate, const Activation& up) {
  check_same_shape("swiglu", gate, up);
  return elementwise(gate, [p = data(gate), q = data(up), this](int64_t i, int64_t n, float* y) {
    kernels_.swiglu(p + i, q + i, n, y);
  });
}

}  // namespace limpid
