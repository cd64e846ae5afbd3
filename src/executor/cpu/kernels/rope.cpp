// Half-split pairs: element i turns with element i + n_rot / 2, so both are runs of lanes and
// nothing is shuffled.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// By the angles or, with kBack, by the opposite ones.
template <bool kBack>
LIMPID_INLINE void rotate(const float* x, const float* cos, const float* sin, int64_t n_heads,
                          int64_t head_dim, int64_t n_rot, float* y) {
  const int64_t half = n_rot / 2;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim, y += head_dim) {
    for (int64_t i = 0; i < half; i += kLanes) {
      const F32x16 c = load_at(cos, i, half), sine = load_at(sin, i, half);
      const F32x16 s = kBack ? negate(sine) : sine;
      const F32x16 a = load_at(x, i, half), b = load_at(x + half, i, half);
      store_at(sub(mul(a, c), mul(b, s)), y, i, half);
      store_at(add(mul(a, s), mul(b, c)), y + half, i, half);
    }
    for (int64_t i = n_rot; i < head_dim; i += kLanes) {
      store_at(load_at(x, i, head_dim), y, i, head_dim);
    }
  }
}

}  // namespace

void rope(const float* x, const float* cos, const float* sin, int64_t n_heads, int64_t head_dim,
          int64_t n_rot, float* y) {
  rotate<false>(x, cos, sin, n_heads, head_dim, n_rot, y);
}

void rope_gradient(const float* dy, const float* cos, const float* sin, int64_t n_heads,
                   int64_t head_dim, int64_t n_rot, float* dx) {
  rotate<true>(dy, cos, sin, n_heads, head_dim, n_rot, dx);
}

}  // namespace limpid::LIMPID_ISA
