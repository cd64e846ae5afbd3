// Keeps quantised numbers from being smaller, on the whole, than the numbers that they replace.
//
// Let y be a least-squares fit of x. Its error x - y is orthogonal to y, so <x, y> = <y, y>, which
// is less than <x, x>. Every product with y is therefore too small on average, by the relative
// squared error e = |x - y|^2 / |x|^2. This happens in every row and in every layer. Other errors
// have random signs and grow with the square root of the number of layers; this one always has the
// same sign and grows with the number of layers.
//
// So, once the levels are chosen, the scales are multiplied by <x, x> / <x, y>. Then the error is
// orthogonal to x, and products are right on average. The price is a larger squared error: e / (1 -
// e) instead of e.
//
// Example: x = (1, 3), levels (0, 1). The best scale is 3, so y = (0, 3), e = 0.1, and <x, y> = 9
// where <x, x> = 10. The factor is 10/9, y becomes (0, 10/3), and <x, y> = 10.
//
// docs/quantization.md has the measured gain.
#pragma once

#include <algorithm>
#include <cmath>

#include "tensor/quantize_lanes.h"

namespace limpid {

// Sums over a block that give the factor for its scales.
class Gain {
 public:
  // Adds a group of numbers x, which y = scale * level + offset replaces.
  template <int N>
  void add(const Group<N>& x, const Group<N>& weights, const Group<N>& levels, float scale,
           float offset) {
    for (int i = 0; i < Group<N>::kRegisters; ++i) {
      const Float4 y = all_lanes(scale) * levels.lanes[i] + all_lanes(offset);
      const Float4 wx = weights.lanes[i] * x.lanes[i];
      product_ += wx * y;
      missing_ += wx * (x.lanes[i] - y);
    }
  }

  // The factor for scales (and offsets); 1 if the sums do not give a finite number.
  float factor() const {
    // In Q2_K, the coarsest type, the factor is about 1.07. A block that wants much more than that
    // has numbers that no scale can fit.
    constexpr float kMost = 1.25F;
    const float factor = 1 + sum_lanes(missing_) / sum_lanes(product_);
    return std::isfinite(factor) ? std::clamp(factor, 1 / kMost, kMost) : 1;
  }

 private:
  Float4 product_ = {};  // sum of w x y
  Float4 missing_ = {};  // sum of w x (x - y)
};

}  // namespace limpid
