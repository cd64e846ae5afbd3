#include "executor/cpu/cpu_executor.h"

namespace limpid {

Activation CpuExecutor::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps) {
  const int64_t cols = x.cols();
  const float* w = vector_weight(weight, cols, "layer_norm").vector.data();
  const float* b = bias ? vector_weight(bias, cols, "layer_norm").vector.data() : nullptr;
  Activation y = allocate(x.rows(), cols);
  for_rows(x.rows(), cols, [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
    kernels_.layer_norm(in + begin * cols, w, b, end - begin, cols, eps, out + begin * cols);
  });
  return y;
}

}  // namespace limpid
