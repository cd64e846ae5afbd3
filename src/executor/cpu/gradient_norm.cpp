// Backward of rms_norm and layer_norm.
#include "executor/cpu/cpu_gradients.h"

namespace limpid {

Activation CpuGradients::norm(const Activation& x, const Weight& weight, const Weight& bias,
                              float eps, bool centred, const Activation& dy) {
  Activation dx = like(x);
  const int64_t cols = weight.cols;
  const int64_t n_groups = x.rows() * x.cols() / cols;
  const Activation statistics = ex_.allocate(2, n_groups);
  const NormGradientTask all{
      data(x),  data(dy),         loaded(weight).vector.data(), n_groups, cols, eps, centred,
      data(dx), data(statistics), data(statistics) + n_groups};
  ex_.for_rows(n_groups, cols, [&](int64_t begin, int64_t end) {
    NormGradientTask task = all;
    task.x += begin * cols;
    task.dy += begin * cols;
    task.dx += begin * cols;
    task.mean += begin;
    task.inverse_root += begin;
    task.n_rows = end - begin;
    ex_.kernels_.norm_gradient(task);
  });
  for_vector(weight, [&](float* sums, int64_t begin, int64_t end) {
    ex_.kernels_.norm_weight_gradient(all, begin, end, sums);
  });
  add_dvector(bias, dy);
  return dx;
}

}  // namespace limpid
