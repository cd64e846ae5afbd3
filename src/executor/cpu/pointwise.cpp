// Ops on elements: each result depends on the same element of the operands only.
#include "base/check.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

Activation CpuExecutor::add(const Activation& a, const Activation& b) {
  LIMPID_CHECK(ShapeError, a.rows() == b.rows() && a.cols() == b.cols(),
               "[add] [{}, {}] and [{}, {}]", a.rows(), a.cols(), b.rows(), b.cols());
  Activation y = allocate(a.rows(), a.cols());
  for_rows(a.rows() * a.cols(), 1,
           [p = data(a), q = data(b), out = data(y), this](int64_t begin, int64_t end) {
             kernels_.add_elements(p + begin, q + begin, end - begin, out + begin);
           });
  return y;
}

Activation CpuExecutor::scale(const Activation& x, float factor) {
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows() * x.cols(), 1,
           [p = data(x), out = data(y), factor, this](int64_t begin, int64_t end) {
             kernels_.scale_elements(p + begin, factor, end - begin, out + begin);
           });
  return y;
}

Activation CpuExecutor::unary(UnaryKind kind, const Activation& x) {
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows() * x.cols(), 1,
           [p = data(x), out = data(y), kind, this](int64_t begin, int64_t end) {
             kernels_.unary(kind, p + begin, end - begin, out + begin);
           });
  return y;
}

Activation CpuExecutor::swiglu(const Activation& gate, const Activation& up) {
  LIMPID_CHECK(ShapeError, gate.rows() == up.rows() && gate.cols() == up.cols(),
               "[swiglu] [{}, {}] and [{}, {}]", gate.rows(), gate.cols(), up.rows(), up.cols());
  Activation y = allocate(gate.rows(), gate.cols());
  for_rows(gate.rows() * gate.cols(), 1,
           [p = data(gate), q = data(up), out = data(y), this](int64_t begin, int64_t end) {
             kernels_.swiglu(p + begin, q + begin, end - begin, out + begin);
           });
  return y;
}

}  // namespace limpid
