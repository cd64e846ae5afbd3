// The search for blocks of 32 elements under one scale, and perhaps an offset, in half precision.
#pragma once

#include "tensor/quantize_drift.h"
#include "tensor/quantize_fit.h"
#include "tensor/quantize_weights.h"

namespace limpid {

// Levels of the block for a scale and an offset, the latter two already as they will be stored.
template <typename Levels>
void choose_levels(const Group<kBlock>& x, float scale, float offset, const BlockColumns& columns,
                   float (&levels)[kBlock]) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Group<kBlock> nearest;
  for (int i = 0; i < Group<kBlock>::kRegisters; ++i) {
    nearest.lanes[i] = Levels::nearest((x.lanes[i] - all_lanes(offset)) * inverse);
  }
  nearest.store(levels);
  settle_drift<Levels>({x}, {scale}, {offset}, columns, levels);
}

// The scale of x = scale * level. Writes the levels.
template <typename Levels>
float search_block(const float* values, const BlockColumns& columns, float (&levels)[kBlock]) {
  const auto x = Group<kBlock>::load(values);
  const auto weights = block_weights(x, columns.importance);
  const float scale = rounded_to_half(fit_scale<Levels>(x, weights).scale);
  choose_levels<Levels>(x, scale, 0, columns, levels);
  return scale;
}

struct ScaleAndOffset {
  float scale;
  float offset;
};

// The scale and the offset of x = scale * level + offset. Writes the levels, of 0, ..., Top.
template <int Top>
ScaleAndOffset search_affine_block(const float* values, const BlockColumns& columns,
                                   float (&levels)[kBlock]) {
  const auto x = Group<kBlock>::load(values);
  const AffineFit fit = fit_affine<Top, false>(x, block_weights(x, columns.importance));
  const float scale = rounded_to_half(fit.scale);
  const float offset = rounded_to_half(fit.offset);
  choose_levels<UniformLevels<0, Top>>(x, scale, offset, columns, levels);
  return {scale, offset};
}

}  // namespace limpid
