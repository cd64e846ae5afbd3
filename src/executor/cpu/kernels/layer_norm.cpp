// Mean, variance and result in three passes. The variance is of the differences to the mean, not
// mean(x^2) - mean(x)^2, which would cancel.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

void layer_norm(const float* x, const float* weight, const float* bias, int64_t n_rows,
                int64_t cols, float eps, float* y) {
  const auto n = static_cast<float>(cols);
  for (int64_t row = 0; row < n_rows; ++row, x += cols, y += cols) {
    F32x16 sum = zero();
    for (int64_t i = 0; i < cols; i += kLanes) sum = add(sum, load_at(x, i, cols));
    const F32x16 mean = broadcast(reduce_add(sum) / n);
    F32x16 squares = zero();
    int64_t i = 0;
    for (; i + kLanes <= cols; i += kLanes) {
      const F32x16 v = sub(load(x + i), mean);
      squares = fma(v, v, squares);
    }
    if (i < cols) {  // lanes beyond the row would add the mean's square
      float tail[kLanes] = {};
      store_partial(sub(load_partial(x + i, cols - i), mean), tail, cols - i);
      squares = fma(load(tail), load(tail), squares);
    }
    const F32x16 factor = broadcast(inverse_root(reduce_add(squares) / n + eps));
    for (i = 0; i < cols; i += kLanes) {
      const F32x16 normal = mul(sub(load_at(x, i, cols), mean), factor);
      const F32x16 shift = bias == nullptr ? zero() : load_at(bias, i, cols);
      store_at(fma(normal, load_at(weight, i, cols), shift), y, i, cols);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
