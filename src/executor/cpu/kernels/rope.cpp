// Half-split pairs: element i turns with element i + n_rot / 2, so both are runs of lanes and
// nothing is shuffled.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

// Turning back is turning with the elements of each pair exchanged.
void rope(const float* x, const float* cos, const float* sin, int64_t n_heads, int64_t head_dim,
          int64_t n_rot, bool back, float* y) {
  const int64_t half = n_rot / 2;
  const int64_t first = back ? half : 0;
  const int64_t second = half - first;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim, y += head_dim) {
    for (int64_t i = 0; i < half; i += kLanes) {
      const F32x16 c = load_at(cos, i, half), s = load_at(sin, i, half);
      const F32x16 a = load_at(x + first, i, half), b = load_at(x + second, i, half);
      store_at(sub(mul(a, c), mul(b, s)), y + first, i, half);
      store_at(add(mul(a, s), mul(b, c)), y + second, i, half);
    }
    for (int64_t i = n_rot; i < head_dim; i += kLanes) {
      store_at(load_at(x, i, head_dim), y, i, head_dim);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
