// Backward of rms_norm and layer_norm; executor/gradient_op_list.h has the formulas.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

void norm_gradient(const NormGradientTask& task) {
  const int64_t cols = task.cols;
  const auto n = static_cast<float>(cols);
  for (int64_t t = 0; t < task.n_rows; ++t) {
    const float* x = task.x + t * cols;
    const float* dy = task.dy + t * cols;
    float* dx = task.dx + t * cols;
    float mean = 0;
    if (task.centred) {
      F32x16 sum = zero();
      for (int64_t i = 0; i < cols; i += kLanes) sum = add(sum, load_at(x, i, cols));
      mean = reduce_add(sum) / n;
    }
    // dx is free until the last pass, so the centred row waits there: its lanes beyond the last
    // column are then 0, and add nothing.
    for (int64_t i = 0; i < cols; i += kLanes)
      store_at(sub(load_at(x, i, cols), broadcast(mean)), dx, i, cols);
    F32x16 squares = zero();
    F32x16 sum_g = zero();
    F32x16 sum_gc = zero();
    for (int64_t i = 0; i < cols; i += kLanes) {
      const F32x16 c = load_at(dx, i, cols);
      const F32x16 g = mul(load_at(dy, i, cols), load_at(task.weight, i, cols));
      squares = fma(c, c, squares);
      sum_g = add(sum_g, g);
      sum_gc = fma(g, c, sum_gc);
    }
    const float inverse = inverse_root(reduce_add(squares) / n + task.eps);
    const float mean_g = task.centred ? reduce_add(sum_g) / n : 0.0F;
    // mean(g n) n = mean(g c) / r^2 c
    const float along = reduce_add(sum_gc) / n * inverse * inverse;
    for (int64_t i = 0; i < cols; i += kLanes) {
      const F32x16 c = load_at(dx, i, cols);
      const F32x16 dy_w = mul(load_at(dy, i, cols), load_at(task.weight, i, cols));
      const F32x16 g = sub(dy_w, broadcast(mean_g));
      store_at(mul(sub(g, mul(c, broadcast(along))), broadcast(inverse)), dx, i, cols);
    }
    task.mean[t] = mean;
    task.inverse_root[t] = inverse;
  }
}

void norm_weight_gradient(const NormGradientTask& task, int64_t begin, int64_t end,
                          float* dweight) {
  for (int64_t j = begin; j < end; j += kLanes) {
    F32x16 sum = load_at(dweight, j, end);
    for (int64_t t = 0; t < task.n_rows; ++t) {
      const F32x16 centred = sub(load_at(task.x + t * task.cols, j, end), broadcast(task.mean[t]));
      const F32x16 normal = mul(centred, broadcast(task.inverse_root[t]));
      sum = fma(load_at(task.dy + t * task.cols, j, end), normal, sum);
    }
    store_at(sum, dweight, j, end);
  }
}

}  // namespace limpid::LIMPID_ISA
