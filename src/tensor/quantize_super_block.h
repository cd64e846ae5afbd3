// Quantises blocks of 256 elements in groups of 16 or 32. The scale of a group is itself an
// integer, times a common scale d of the block in half precision; formats with minima have a second
// common scale, dmin. So x = (d * scale[g]) * q - (dmin * minimum[g]), with scales of 4 to 8 bits.
//
// The search:
//   1. Fit the scale (and the minimum) of each group alone (quantize_fit.h), as real numbers.
//   2. Choose d (and dmin) so that integers times d are near to these numbers. The same search as
//      for a group of weights does that, with the groups' scales as its numbers.
//   3. For each group, try the integers around its own number / d, and keep those with the least
//      error of its elements.
//   4. With these integers and levels fixed, solve for d (and dmin) by least squares over the
//      block. Repeat 3 and 4 while the error falls, at most four times.
//   5. Correct the gain (quantize_gain.h), then the drift (quantize_drift.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/quantize_drift.h"
#include "tensor/quantize_fit.h"
#include "tensor/quantize_gain.h"

namespace limpid {

inline constexpr int kSuperBlockRounds = 4;

// The groups of a block, with the weight of each element's error: its importance, or 1 for all if
// that is unknown.
template <int N>
struct WeighedGroups {
  static constexpr int kGroups = kSuperBlock / N;
  Group<N> x[kGroups];
  Group<N> weights[kGroups];

  WeighedGroups(const float* values, const BlockColumns& columns) {
    for (int g = 0; g < kGroups; ++g) {
      x[g] = Group<N>::load(values + g * N);
      if (columns.importance != nullptr) {
        weights[g] = Group<N>::load(columns.importance + g * N);
      } else {
        for (Float4& lane : weights[g].lanes) lane = all_lanes(1);
      }
    }
  }
};

// The contents of a block of x = (d * scale[g]) * q - (dmin * minimum[g]). A format without minima
// has zeros there.
template <int N>
struct SuperBlock {
  static constexpr int kGroups = kSuperBlock / N;
  float d = 0;
  float dmin = 0;
  float scale[kGroups] = {};    // whole numbers
  float minimum[kGroups] = {};  // whole numbers
  float error = std::numeric_limits<float>::infinity();
};

// Step 3: gives every group the integers with the least error of its elements. The pairs of
// `Scales` and `Minima` that are at most one away from (scale / d, minimum / dmin) are tried: nine,
// or three without minima.
template <typename Levels, typename Scales, typename Minima, int N>
void choose_integers(const WeighedGroups<N>& groups, const AffineFit* fits, SuperBlock<N>& block) {
  const float inverse_d = block.d == 0 ? 0 : 1 / block.d;
  const float inverse_dmin = block.dmin == 0 ? 0 : 1 / block.dmin;
  const auto scale_near = [](float v) { return std::clamp(v, Scales::kLow, Scales::kHigh); };
  const auto minimum_near = [](float v) { return std::clamp(v, Minima::kLow, Minima::kHigh); };
  block.error = 0;
  for (int g = 0; g < SuperBlock<N>::kGroups; ++g) {
    const float near_scale = scale_near(std::nearbyint(fits[g].scale * inverse_d));
    const float near_minimum = minimum_near(std::nearbyint(-fits[g].offset * inverse_dmin));
    float least = std::numeric_limits<float>::infinity();
    for (int i = -1; i <= 1; ++i) {
      for (int j = -1; j <= 1; ++j) {
        const float scale = near_scale + static_cast<float>(i);
        const float minimum = near_minimum + static_cast<float>(j);
        if (scale != scale_near(scale) || minimum != minimum_near(minimum)) continue;
        const float error = error_of<Levels>(groups.x[g], groups.weights[g], block.d * scale,
                                             -(block.dmin * minimum));
        if (error < least) {
          least = error;
          block.scale[g] = scale;
          block.minimum[g] = minimum;
        }
      }
    }
    block.error += least;
  }
}

// Step 4: d (and dmin) by least squares, for the integers of the block and the levels that follow
// from them.
template <typename Levels, bool kHasMinima, int N>
void solve_common_scales(const WeighedGroups<N>& groups, SuperBlock<N>& block) {
  // The problem is x = d * u - dmin * v with u = scale * q and v = minimum. The names are weighted
  // sums over the block: uv is the sum of w u v.
  float uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
  for (int g = 0; g < SuperBlock<N>::kGroups; ++g) {
    const float scale = block.d * block.scale[g];
    const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
    const Float4 minimum = all_lanes(block.dmin * block.minimum[g]);
    Float4 w_sum = {}, wq_sum = {}, qq_sum = {}, xq_sum = {}, x_sum = {};
    for (int i = 0; i < Group<N>::kRegisters; ++i) {
      const Float4 x = groups.x[g].lanes[i];
      const Float4 w = groups.weights[g].lanes[i];
      const Float4 q = Levels::nearest((x + minimum) * inverse);
      qq_sum += w * q * q;
      xq_sum += w * q * x;
      if constexpr (!kHasMinima) continue;
      w_sum += w;
      wq_sum += w * q;
      x_sum += w * x;
    }
    const float s = block.scale[g];
    const float m = block.minimum[g];
    uu += s * s * sum_lanes(qq_sum);
    uv += s * m * sum_lanes(wq_sum);
    vv += m * m * sum_lanes(w_sum);
    xu += s * sum_lanes(xq_sum);
    xv += m * sum_lanes(x_sum);
  }
  const float determinant = uu * vv - uv * uv;
  if (determinant > 0 && vv > 0) {
    const float d = (xu * vv - uv * xv) / determinant;
    const float dmin = (uv * xu - uu * xv) / determinant;
    if (d > 0 && dmin >= 0) {
      block.d = rounded_to_half(d);
      block.dmin = rounded_to_half(dmin);
    }
  } else if (uu > 0 && (xu > 0 || !kHasMinima)) {
    block.d = rounded_to_half(xu / uu);
  }
}

// Step 2: the common scale of `numbers`, which `Integers` times that scale will replace.
template <typename Integers, int N>
float common_scale(const float (&numbers)[kSuperBlock / N],
                   const float (&weights)[kSuperBlock / N]) {
  using Numbers = Group<kSuperBlock / N>;
  return rounded_to_half(fit_scale<Integers>(Numbers::load(numbers), Numbers::load(weights)).scale);
}

// Writes the levels nearest to x = scales[g] * level + offsets[g]. Returns the gain of the block.
template <typename Levels, int N>
Gain choose_levels(const WeighedGroups<N>& groups, const float* scales, const float* offsets,
                   float* levels) {
  Gain gain;
  for (int g = 0; g < WeighedGroups<N>::kGroups; ++g) {
    const auto nearest = nearest_levels<Levels>(groups.x[g], scales[g], offsets[g]);
    gain.add(groups.x[g], groups.weights[g], nearest, scales[g], offsets[g]);
    nearest.store(levels + g * N);
  }
  return gain;
}

// The minima of a format that has none.
using NoMinima = UniformLevels<0, 0>;

// Quantises the 256 `values` of a block in groups of N, with integers out of `Scales` and `Minima`
// that begin at 0. Writes the levels to `levels`.
template <typename Levels, typename Scales, typename Minima, int N>
SuperBlock<N> search_super_block(const float* values, const BlockColumns& columns,
                                 float (&levels)[kSuperBlock]) {
  constexpr int kGroups = SuperBlock<N>::kGroups;
  constexpr bool kHasMinima = Minima::kHigh > 0;
  const WeighedGroups<N> groups(values, columns);
  AffineFit fits[kGroups];
  float scales[kGroups];   // as fitted, then as they will be stored
  float minima[kGroups];   // as fitted
  float offsets[kGroups];  // as they will be stored: minima with the other sign
  float weights[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    if constexpr (kHasMinima)
      fits[g] = fit_affine<static_cast<int>(Levels::kHigh), true>(groups.x[g], groups.weights[g]);
    else
      fits[g].scale = fit_scale<Levels>(groups.x[g], groups.weights[g]).scale;
    scales[g] = fits[g].scale;
    minima[g] = -fits[g].offset;
    weights[g] = sum(groups.weights[g]);
  }
  SuperBlock<N> best;
  SuperBlock<N> trial;
  trial.d = common_scale<Scales, N>(scales, weights);
  if constexpr (kHasMinima) trial.dmin = common_scale<Minima, N>(minima, weights);
  for (int round = 0; round < kSuperBlockRounds; ++round) {
    choose_integers<Levels, Scales, Minima>(groups, fits, trial);
    if (!(trial.error < best.error)) break;
    best = trial;
    solve_common_scales<Levels, kHasMinima>(groups, trial);
  }
  const auto set_stored = [&] {
    for (int g = 0; g < kGroups; ++g) {
      scales[g] = best.d * best.scale[g];
      offsets[g] = -(best.dmin * best.minimum[g]);
    }
  };
  set_stored();
  const float factor = choose_levels<Levels>(groups, scales, offsets, levels).factor();
  best.d = rounded_to_half(best.d * factor);
  best.dmin = rounded_to_half(best.dmin * factor);
  set_stored();
  settle_drift<Levels>(groups.x, scales, offsets, columns, levels);
  return best;
}

}  // namespace limpid
