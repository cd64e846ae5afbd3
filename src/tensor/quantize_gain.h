// Keeps quantised numbers from being smaller, on the whole, than the numbers they replace.
//
// A least-squares fit y of x leaves an error that is orthogonal to y, so that <x, y> = <y, y>,
// which is less than <x, x>: every product with y comes out too small by the relative squared
// error, in every row and every layer alike. Such an error does not average out as the rest does:
// it grows with the number of layers, the rest with the root of it. So, once the levels are chosen,
// scales are multiplied by <x, x> / <x, y>, after which the error is orthogonal to x. That raises
// the relative squared error from e to e / (1 - e) (docs/quantization.md has what it gains).
#pragma once

#include <algorithm>
#include <cmath>

#include "tensor/quantize_lanes.h"

namespace limpid {

// Sums over a block.
class Gain {
 public:
  // x, and y = scale * level + offset that replaces it.
  template <int N>
  void add(const Group<N>& x, const Group<N>& weights, const Group<N>& levels, float scale,
           float offset = 0) {
    for (int i = 0; i < Group<N>::kRegisters; ++i) {
      const Float4 y = all_lanes(scale) * levels.lanes[i] + all_lanes(offset);
      const Float4 wx = weights.lanes[i] * x.lanes[i];
      product_ += wx * y;
      missing_ += wx * (x.lanes[i] - y);
    }
  }

  // The factor for scales (and offsets); 1 if the sums do not give one.
  float factor() const {
    // Q2_K, the coarsest, is at 1.07; blocks far beyond hold nothing that a fit could express.
    constexpr float kMost = 1.25F;
    const float factor = 1 + sum_lanes(missing_) / sum_lanes(product_);
    return std::isfinite(factor) ? std::clamp(factor, 1 / kMost, kMost) : 1;
  }

 private:
  Float4 product_ = {};  // sum of w x y
  Float4 missing_ = {};  // sum of w x (x - y)
};

}  // namespace limpid
