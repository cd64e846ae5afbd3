#include "base/check.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

// Norms groups of weight.cols elements: a row is one group, or with the QK norm one group a head.
// Groups lie one after another in memory, so they are shared out as if each were a row.
Activation CpuExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  LIMPID_CHECK(ShapeError, weight.cols > 0 && x.cols() % weight.cols == 0,
               "[rms_norm] weight [{}], x [{}, {}]", weight.cols, x.rows(), x.cols());
  const int64_t cols = weight.cols;
  const float* w = vector_weight(weight, cols, "rms_norm").vector.data();
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows() * x.cols() / cols, cols,
           [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
             kernels_.rms_norm(in + begin * cols, w, end - begin, cols, eps, out + begin * cols);
           });
  return y;
}

}  // namespace limpid
