#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

// Norms groups of weight.cols elements: a row is one group, or with the QK norm one group a head.
// Groups lie one after another in memory, so they are shared out as if each were a row.
Activation CpuExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  check_rms_norm(x, weight);
  const int64_t cols = weight.cols;
  const float* w = loaded(weight).vector.data();
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows() * x.cols() / cols, cols,
           [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
             kernels_.rms_norm(in + begin * cols, w, end - begin, cols, eps, out + begin * cols);
           });
  return y;
}

Activation CpuExecutor::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps) {
  const int64_t cols = x.cols();
  check_vector("layer_norm", weight, cols);
  if (bias) check_vector("layer_norm", bias, cols);
  const float* w = loaded(weight).vector.data();
  const float* b = bias ? loaded(bias).vector.data() : nullptr;
  Activation y = allocate(x.rows(), cols);
  for_rows(x.rows(), cols, [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
    kernels_.layer_norm(in + begin * cols, w, b, end - begin, cols, eps, out + begin * cols);
  });
  return y;
}

}  // namespace limpid
