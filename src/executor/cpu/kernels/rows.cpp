// Ops on rows: norms and rotary embedding.
#include "executor/cpu/kernels/kernels-inl.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// The next up to 16 elements at `i` of n.
LIMPID_INLINE F32x16 load_at(const float* p, int64_t i, int64_t n) {
  return i + kLanes <= n ? load(p + i) : load_partial(p + i, n - i);
}
LIMPID_INLINE void store_at(F32x16 v, float* p, int64_t i, int64_t n) {
  i + kLanes <= n ? store(v, p + i) : store_partial(v, p + i, n - i);
}

LIMPID_INLINE float inverse_root(float mean_square, float eps) {
  return 1.0F / __builtin_sqrtf(mean_square + eps);
}

}  // namespace

void rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t cols, float eps,
              float* y) {
  for (int64_t row = 0; row < n_rows; ++row, x += cols, y += cols) {
    F32x16 squares = zero();
    for (int64_t i = 0; i < cols; i += kLanes) {
      const F32x16 v = load_at(x, i, cols);
      squares = fma(v, v, squares);
    }
    const F32x16 factor =
        broadcast(inverse_root(reduce_add(squares) / static_cast<float>(cols), eps));
    for (int64_t i = 0; i < cols; i += kLanes) {
      store_at(mul(mul(load_at(x, i, cols), factor), load_at(weight, i, cols)), y, i, cols);
    }
  }
}

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
    const F32x16 factor = broadcast(inverse_root(reduce_add(squares) / n, eps));
    for (i = 0; i < cols; i += kLanes) {
      const F32x16 normal = mul(sub(load_at(x, i, cols), mean), factor);
      const F32x16 shift = bias == nullptr ? zero() : load_at(bias, i, cols);
      store_at(fma(normal, load_at(weight, i, cols), shift), y, i, cols);
    }
  }
}

void rope(const float* x, const float* cos, const float* sin, int64_t n_heads, int64_t head_dim,
          int64_t n_rot, float* y) {
  const int64_t half = n_rot / 2;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim, y += head_dim) {
    for (int64_t i = 0; i < half; i += kLanes) {
      const F32x16 c = load_at(cos, i, half), s = load_at(sin, i, half);
      const F32x16 a = load_at(x, i, half), b = load_at(x + half, i, half);
      store_at(sub(mul(a, c), mul(b, s)), y, i, half);
      store_at(add(mul(a, s), mul(b, c)), y + half, i, half);
    }
    for (int64_t i = n_rot; i < head_dim; i += kLanes) {
      store_at(load_at(x, i, head_dim), y, i, head_dim);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
