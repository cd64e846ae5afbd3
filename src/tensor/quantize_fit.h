// Searches for the scale (and offset) of one group of numbers that leave the least weighted squared
// error once every number has gone to its nearest level.
//
// For given levels q the best scale is a least-squares solution; for a given scale the best levels
// are the nearest ones. Alternating the two (Lloyd 1982, "Least squares quantization in PCM") never
// makes the error larger, but ends in the nearest local minimum, so it is begun from several
// scales.
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

// The levels Low, Low + 1, ..., High. `Starts` scales are tried that take the extreme number to a
// place around Low, and as many around High, `kStep` apart.
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

// The index of each of the levels -127, ..., 113 of the IQ4 formats, by level + 127.
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

// Element j and element j + 16 of a group to byte j.
inline void pack_iq4_indices(const float* levels, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>(index_of_iq4_level(levels[j]) |
                                 (index_of_iq4_level(levels[16 + j]) << 4));
  }
}

// The uneven levels of the IQ4 formats.
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

struct ScaleFit {
  float scale = 0;
  float error = std::numeric_limits<float>::infinity();  // sum of w * (x - scale * q)^2
};

// The error of x = scale * q, with the q nearest to x / scale.
template <typename Levels, int N>
float error_of(const Group<N>& x, const Group<N>& weights, float scale) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Float4 error = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) {
    const Float4 rest = x.lanes[i] - all_lanes(scale) * Levels::nearest(x.lanes[i] * inverse);
    error += weights.lanes[i] * rest * rest;
  }
  return sum_lanes(error);
}

// Levels for x * inverse, and the scale that suits them best.
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

template <int N>
float extreme_of(const Group<N>& x) {
  float extreme = x[0];
  for (int i = 1; i < N; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// The scale of x = scale * q.
template <typename Levels, int N>
ScaleFit fit_scale(const Group<N>& x, const Group<N>& weights) {
  constexpr float kTiny = 1e-30F;
  constexpr int kRounds = 4;
  const float extreme = extreme_of(x);
  ScaleFit best{0, error_of<Levels>(x, weights, 0)};
  if (!(std::fabs(extreme) > kTiny)) return best;
  const auto consider = [&](float scale) {
    const float error = error_of<Levels>(x, weights, scale);
    if (error < best.error) best = {scale, error};
  };
  for (int start = 0; start < Levels::kStarts; ++start) {
    const float beyond = Levels::kStep * (static_cast<float>(start) - (Levels::kStarts - 1) * 0.5F);
    if (Levels::kLow < 0) {
      consider(best_scale_for<Levels>(x, weights, (Levels::kLow - beyond) / extreme));
    }
    consider(best_scale_for<Levels>(x, weights, (Levels::kHigh + beyond) / extreme));
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

// The error of x = scale * q + offset with the nearest q of 0, ..., Top.
template <int Top, int N>
float error_of(const Group<N>& x, const Group<N>& weights, float scale, float offset) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Float4 error = {};
  for (int i = 0; i < Group<N>::kRegisters; ++i) {
    const Float4 above = x.lanes[i] - all_lanes(offset);
    const Float4 q = round_to_even(clamp(above * inverse, 0, Top));
    const Float4 rest = above - all_lanes(scale) * q;
    error += weights.lanes[i] * rest * rest;
  }
  return sum_lanes(error);
}

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

// Levels for (x - offset) * inverse, then the scale and the offset that suit them best, by the
// normal equations; with `NoneAbove` the offset stays at most 0. No error is computed.
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

// The scale and offset of x = scale * q + offset, q in 0, ..., Top; scale >= 0. `NoneAbove`: the
// offset is at most 0, as in the K formats, which store it negated.
template <int Top, bool NoneAbove, int N>
AffineFit fit_affine(const Group<N>& x, const Group<N>& weights) {
  constexpr int kRounds = 4;
  // How far the outermost levels begin inside the range (or outside of it), below and above, in
  // steps. Few levels gain from being inside; one step outside is where a coarser grid is met.
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
  if (!(range > 0)) return {0, low, error_of<Top>(x, weights, 0, low)};
  const GroupMoments moments = moments_of(x, weights);
  AffineFit best{range / Top, low, error_of<Top>(x, weights, range / Top, low)};
  const auto consider = [&](AffineFit fit) {
    if (fit.scale < 0) return;
    if (NoneAbove && fit.offset > 0) fit.offset = 0;
    fit.error = error_of<Top>(x, weights, fit.scale, fit.offset);
    if (fit.error < best.error) best = fit;
  };
  const float step = range / Top;
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

// How much the error of each element counts in the search.

// `importance`, or all alike where it is null: of the formats with two levels of scales.
template <int N>
Group<N> element_weights(const float* importance) {
  if (importance != nullptr) return Group<N>::load(importance);
  Group<N> weights;
  for (Float4& lane : weights.lanes) lane = all_lanes(1);
  return weights;
}

// Of the formats whose block has one scale: without an importance the large elements count more,
//   w = sqrt(mean(x^2) + x^2),
// because one scale for 32 elements cuts them off when all count alike, and a model suffers more
// from that than the squared error says (docs/quantization.md has the measurement).
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
