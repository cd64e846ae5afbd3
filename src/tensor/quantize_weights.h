// How much the error of each element counts in a search for scales.
#pragma once

#include <cmath>

#include "tensor/quantize_lanes.h"

namespace limpid {

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
