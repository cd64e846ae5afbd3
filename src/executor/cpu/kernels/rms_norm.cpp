// The mean of squares and then the scaled row: two passes over a row, which stays in the L1 cache.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

void rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t cols, float eps,
              float* y) {
  for (int64_t row = 0; row < n_rows; ++row, x += cols, y += cols) {
    F32x16 squares = zero();
    for (int64_t i = 0; i < cols; i += kLanes) {
      const F32x16 v = load_at(x, i, cols);
      squares = fma(v, v, squares);
    }
    const F32x16 factor =
        broadcast(inverse_root(reduce_add(squares) / static_cast<float>(cols) + eps));
    for (int64_t i = 0; i < cols; i += kLanes) {
      store_at(mul(mul(load_at(x, i, cols), factor), load_at(weight, i, cols)), y, i, cols);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
