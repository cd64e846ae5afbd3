// The 32-element formats: blocks under one scale, and perhaps an offset, in half precision.
#include <cstring>

#include "tensor/quantize_block.h"
#include "tensor/quantize_fit.h"

namespace limpid {
namespace {

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

// 32 levels of at most 4 bits to nibbles: element j < 16 to the low one of byte j, element 16 + j
// to its high one.
void pack_nibbles(const uint8_t (&q)[kBlock], uint8_t (&qs)[16]) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>((q[j] & 0x0f) | (q[16 + j] << 4));
  }
}

// The fifth bits of 32 levels, element i to bit i.
void pack_fifth_bits(const uint8_t (&q)[kBlock], uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof(qh));
  for (int i = 0; i < kBlock; ++i) {
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((q[i] >> 4) << (i % 8)));
  }
}

// Of the four formats with nibbles. Those with qh have a fifth bit. Those with m are x = d * q + m;
// the levels of the others are around 0, and q is the level shifted to begin at 0.
template <typename Block>
void quantize_nibbles(const float* values, const BlockColumns& columns, Block& block) {
  constexpr bool kHasFifthBit = requires { block.qh; };
  constexpr int kTop = kHasFifthBit ? 31 : 15;
  constexpr int kLow = -(kTop + 1) / 2;
  float levels[kBlock];
  if constexpr (requires { block.m; }) {
    const ScaleAndOffset found = search_affine_block<kTop>(values, columns, levels);
    block.d = to_half(found.scale);
    block.m = to_half(found.offset);
  } else {
    block.d = to_half(search_block<UniformLevels<kLow, kTop + kLow>>(values, columns, levels));
    for (float& level : levels) level -= kLow;
  }
  uint8_t q[kBlock];
  for (int i = 0; i < kBlock; ++i) q[i] = static_cast<uint8_t>(levels[i]);
  pack_nibbles(q, block.qs);
  if constexpr (kHasFifthBit) pack_fifth_bits(q, block.qh);
}

}  // namespace

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_0& block) {
  quantize_nibbles(values, columns, block);
}
void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_1& block) {
  quantize_nibbles(values, columns, block);
}
void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_0& block) {
  quantize_nibbles(values, columns, block);
}
void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_1& block) {
  quantize_nibbles(values, columns, block);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ8_0& block) {
  float levels[kBlock];
  block.d = to_half(search_block<UniformLevels<-127, 127, 5>>(values, columns, levels));
  for (int i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(levels[i]);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockIQ4_NL& block) {
  float levels[kBlock];
  block.d = to_half(search_block<UnevenLevels>(values, columns, levels));
  pack_iq4_indices(levels, block.qs);
}

}  // namespace limpid
