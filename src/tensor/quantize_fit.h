// Searches for the scale (and the offset) of one group of numbers with the least weighted squared
// error, sum w (x - scale * q - offset)^2, where q is the level that is nearest to x.
//
// If the levels q are known, the best scale is the solution of a least-squares problem, <x, q> /
// <q, q>. If the scale is known, the best levels are the nearest ones. Alternating the two steps
// (Lloyd 1982, "Least squares quantization in PCM") never makes the error larger, but ends in a
// local minimum, so the search starts from several scales.
//
// Example: x = (1, 0.8, -0.3), levels -4, ..., 3, all weights 1. The scale 1/3 takes the largest
// number to level 3. Then q = (3, 2, -1), with an error of 0.019. The best scale for this q is 4.9
// / 14 = 0.35, with an error of 0.015. With 0.35 the nearest levels are the same, so the search
// from this start ends.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/blocks.h"
#include "tensor/codec.h"
#include "tensor/quantize_lanes.h"

namespace limpid {

// A scale as files keep it: in half precision, and finite.
inline float rounded_to_half(float value) {
  constexpr float kLargestHalf = 65504;
  return f16_to_f32(f32_to_f16(std::clamp(value, -kLargestHalf, kLargestHalf)));
}
inline Half to_half(float value) { return store_u16(f32_to_f16(value)); }

// The levels Low, Low + 1, ..., High. The search starts from scales that take the number of the
// largest magnitude to a place near Low or near High: `Starts` places for each of the two, `kStep`
// apart.
template <int Low, int High, int Starts = 9>
struct UniformLevels {
  static constexpr float kLow = Low;
  static constexpr float kHigh = High;
  static constexpr int kStarts = Starts;
  static constexpr float kStep = 1.8F / Starts;
  static Float4 nearest(Float4 v) { return round_to_even(clamp(v, kLow, kHigh)); }
  // The level above or below `level`; itself at the end.
  static float next(float level, bool above) {
    return std::clamp(level + (above ? 1.0F : -1.0F), kLow, kHigh);
  }
};

// The inverse of kIq4Levels: entry level + 127 is the index of `level`, one of -127, ..., 113.
inline constexpr auto kIndexOfIq4Level = [] {
  std::array<uint8_t, 241> index{};
  for (size_t i = 0; i < kIq4Levels.size(); ++i) {
    index[static_cast<size_t>(kIq4Levels[i] + 127)] = static_cast<uint8_t>(i);
  }
  return index;
}();
inline unsigned index_of_iq4_level(float level) {
  const int from_lowest = static_cast<int>(level) - kIq4Levels.front();
  return kIndexOfIq4Level[static_cast<size_t>(from_lowest)];
}

// Writes the indices of elements j and j + 16 of a group to the nibbles of byte j.
inline void pack_iq4_indices(const float* levels, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>(index_of_iq4_level(levels[j]) |
                                 (index_of_iq4_level(levels[16 + j]) << 4));
  }
}

// The uneven levels of the IQ4 formats, with the interface of UniformLevels.
struct UnevenLevels {
  static constexpr float kLow = kIq4Levels.front();
  static constexpr float kHigh = kIq4Levels.back();
  static constexpr int kStarts = 9;
  static constexpr float kStep = 2.5F;
  static Float4 nearest(Float4 v) {
    Float4 level = all_lanes(kLow);
    for (size_t i = 1; i < kIq4Levels.size(); ++i) {
      const auto below = static_cast<float>(kIq4Levels[i - 1]);
      const auto above = static_cast<float>(kIq4Levels[i]);
      level += v >= all_lanes((below + above) / 2) ? all_lanes(above - below) : all_lanes(0);
    }
    return level;
  }
  static float next(float level, bool above) {
    const unsigned index = index_of_iq4_level(level);
    const unsigned last = static_cast<unsigned>(kIq4Levels.size()) - 1;
    return kIq4Levels[above ? std::min(index + 1, last) : std::max(index, 1U) - 1];
  }
};

// The levels nearest to x = scale * level + offset.
template <typename Levels, int N>
Group<N> nearest_levels(const Group<N>& x, float scale, float offset) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Group<N> nearest;
  for (int i = 0; i < Group<N>::kRegisters; ++i)
    nearest.lanes[i] = Levels::nearest((x.lanes[i] - all_lanes(offset)) * inverse);
  return nearest;
}

struct ScaleFit {
  float scale = 0;
  float error = std::numeric_limits<float>::infinity();  // sum of w * (x - scale * q)^2
};

// The error of x = scale * q, or of x = scale * q + offset, with the nearest levels q.
template <typename Levels, int N, typename... Offset>
float error_of(const Group<N>& x, const Group<N>& weights, float scale, Offset... offset) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Float4 error = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) {
    const Float4 above = (x.lanes[i] - ... - all_lanes(offset));
    const Float4 rest = above - all_lanes(scale) * Levels::nearest(above * inverse);
    error += weights.lanes[i] * rest * rest;
  }
  return sum_lanes(error);
}

// Takes the levels nearest to x * inverse; returns the best scale for these levels.
template <typename Levels, int N>
float best_scale_for(const Group<N>& x, const Group<N>& weights, float inverse) {
  Float4 xq = {};
  Float4 qq = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) {
    const Float4 q = Levels::nearest(x.lanes[i] * all_lanes(inverse));
    const Float4 wq = weights.lanes[i] * q;
    xq += wq * x.lanes[i];
    qq += wq * q;
  }
  const float squares = sum_lanes(qq);
  return squares > 0 ? sum_lanes(xq) / squares : 0;
}

// The number of the largest magnitude.
template <int N>
float largest_of(const Group<N>& x) {
  float largest = x[0];
  for (int i = 1; i < N; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  return largest;
}

// Searches for the scale of x = scale * q. The scale is 0 for zeros, and for numbers so small that
// their inverse overflows.
template <typename Levels, int N>
ScaleFit fit_scale(const Group<N>& x, const Group<N>& weights) {
  constexpr float kTiny = 1e-30F;
  constexpr int kRounds = 4;
  const float largest = largest_of(x);
  ScaleFit best{0, error_of<Levels>(x, weights, 0)};
  if (!(std::fabs(largest) > kTiny)) return best;
  const auto consider = [&](float scale) {
    const float error = error_of<Levels>(x, weights, scale);
    if (error < best.error) best = {scale, error};
  };
  for (int start = 0; start < Levels::kStarts; ++start) {
    const float beyond = Levels::kStep * (static_cast<float>(start) - (Levels::kStarts - 1) * 0.5F);
    if (Levels::kLow < 0) {
      consider(best_scale_for<Levels>(x, weights, (Levels::kLow - beyond) / largest));
    }
    consider(best_scale_for<Levels>(x, weights, (Levels::kHigh + beyond) / largest));
  }
  for (int round = 0; round < kRounds && best.scale != 0; ++round) {
    const float before = best.error;
    consider(best_scale_for<Levels>(x, weights, 1 / best.scale));
    if (!(best.error < before)) break;
  }
  return best;
}

struct AffineFit {
  float scale = 0;
  float offset = 0;
  float error = std::numeric_limits<float>::infinity();  // sum of w * (x - scale * q - offset)^2
};

// Sums over a group that do not depend on the levels.
struct GroupMoments {
  float weight = 0;    // sum of w
  float weighted = 0;  // sum of w x
};
template <int N>
GroupMoments moments_of(const Group<N>& x, const Group<N>& weights) {
  Float4 weighted = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) weighted += weights.lanes[i] * x.lanes[i];
  return {sum(weights), sum_lanes(weighted)};
}

// Takes the levels nearest to (x - offset) * inverse; returns the best scale and offset for these
// levels. They solve the normal equations of least squares, two equations with two unknowns:
//   <w q, q> scale + <w, q> offset = <w q, x>
//   <w, q> scale + sum w offset = <w, x>
// With `NoneAbove` the offset is at most 0. Does not compute the error.
template <int Top, bool NoneAbove, int N>
AffineFit best_affine_for(const Group<N>& x, const Group<N>& weights, const GroupMoments& moments,
                          float inverse, float offset) {
  Float4 wq_sum = {};
  Float4 xq_sum = {};
  Float4 qq_sum = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) {
    const Float4 v = (x.lanes[i] - all_lanes(offset)) * all_lanes(inverse);
    const Float4 q = round_to_even(clamp(v, 0, Top));
    const Float4 wq = weights.lanes[i] * q;
    wq_sum += wq;
    xq_sum += wq * x.lanes[i];
    qq_sum += wq * q;
  }
  const float q = sum_lanes(wq_sum);
  const float xq = sum_lanes(xq_sum);
  const float qq = sum_lanes(qq_sum);
  const float determinant = moments.weight * qq - q * q;
  if (!(determinant > 0)) return {0, moments.weight > 0 ? moments.weighted / moments.weight : 0};
  AffineFit fit;
  fit.scale = (moments.weight * xq - moments.weighted * q) / determinant;
  fit.offset = (qq * moments.weighted - q * xq) / determinant;
  if (NoneAbove && fit.offset > 0) {
    fit.offset = 0;
    fit.scale = xq / qq;
  }
  return fit;
}

// Searches for the scale and the offset of x = scale * q + offset, q in 0, ..., Top; scale >= 0.
// With `NoneAbove` the offset is at most 0, as in the K formats, which store it negated and without
// a sign.
template <int Top, bool NoneAbove, int N>
AffineFit fit_affine(const Group<N>& x, const Group<N>& weights) {
  using Levels = UniformLevels<0, Top>;
  constexpr int kRounds = 4;
  // Each start puts level 0 this many steps above the smallest number, and level Top this many
  // steps below the largest (negative: outside of the range). With few levels the best ones lie
  // inside the range, since the outermost numbers are rare. A level one step outside is a start for
  // coarser steps. These starts were found by trial.
  struct Margins {
    float below, above;
  };
  constexpr Margins kStarts[] = {{0, 0.45F},     {0, 0.9F},        {0.45F, 0},    {0.45F, 0.45F},
                                 {0.45F, 0.9F},  {0.9F, 0},        {0.9F, 0.45F}, {0.9F, 0.9F},
                                 {-0.5F, 0},     {0, -0.5F},       {-1, 0},       {0, -1},
                                 {0.25F, 0.25F}, {-0.25F, -0.25F}, {0, 0}};
  Float4 low4 = x.lanes[0];
  Float4 high4 = x.lanes[0];
  for (int i = 1; i < Group<N>::kRegisters; ++i) {
    low4 = smaller(x.lanes[i], low4);
    high4 = larger(x.lanes[i], high4);
  }
  float low = std::fmin(std::fmin(low4[0], low4[1]), std::fmin(low4[2], low4[3]));
  const float high = std::fmax(std::fmax(high4[0], high4[1]), std::fmax(high4[2], high4[3]));
  if (NoneAbove && low > 0) low = 0;
  const float range = high - low;
  if (!(range > 0)) return {0, low, error_of<Levels>(x, weights, 0, low)};
  const GroupMoments moments = moments_of(x, weights);
  const float step = range / Top;
  AffineFit best{step, low, error_of<Levels>(x, weights, step, low)};
  const auto consider = [&](AffineFit fit) {
    if (fit.scale < 0) return;
    if (NoneAbove && fit.offset > 0) fit.offset = 0;
    fit.error = error_of<Levels>(x, weights, fit.scale, fit.offset);
    if (fit.error < best.error) best = fit;
  };
  for (const Margins& start : kStarts) {
    const float inverse = Top / (step * (Top - start.below - start.above));
    consider(
        best_affine_for<Top, NoneAbove>(x, weights, moments, inverse, low + start.below * step));
  }
  for (int round = 0; round < kRounds && best.scale > 0; ++round) {
    const float before = best.error;
    consider(best_affine_for<Top, NoneAbove>(x, weights, moments, 1 / best.scale, best.offset));
    if (!(best.error < before)) break;
  }
  return best;
}

// The weights w of a group in formats whose block has one scale: `importance`, or, if it is null,
//   w = sqrt(mean(x^2) + x^2),
// so that large elements count more. With equal weights, the best scale for 32 elements often cuts
// the large ones off, and a model suffers more from that than the squared error says
// (docs/quantization.md has the measurement).
template <int N>
Group<N> block_weights(const Group<N>& x, const float* importance) {
  if (importance != nullptr) return Group<N>::load(importance);
  Group<N> squares;
  for (int i = 0; i < Group<N>::kRegisters; ++i) squares.lanes[i] = x.lanes[i] * x.lanes[i];
  const float mean = sum(squares) / N;
  float weights[N];
  for (int i = 0; i < N; ++i) weights[i] = std::sqrt(mean + squares[i]);
  return Group<N>::load(weights);
}

}  // namespace limpid
