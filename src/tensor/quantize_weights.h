// How much the error of each element counts in a search for scales.
#pragma once

#include "tensor/quantize_lanes.h"

namespace limpid {

// `importance`, or all alike where it is null.
template <int N>
Group<N> element_weights(const float* importance) {
  if (importance != nullptr) return Group<N>::load(importance);
  Group<N> weights;
  for (Float4& lane : weights.lanes) lane = all_lanes(1);
  return weights;
}

}  // namespace limpid
