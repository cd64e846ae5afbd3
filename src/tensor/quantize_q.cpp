// Quantises the formats with blocks of 32 elements: one scale, and in some an offset, in half
// precision.
#include <cstring>

#include "tensor/quantize_block.h"
#include "tensor/quantize_fit.h"

namespace limpid {
namespace {

// Writes the levels of a block. The scale and the offset are rounded as they will be stored.
template <typename Levels>
void choose_levels(const Group<kBlock>& x, float scale, float offset, const BlockColumns& columns,
                   float (&levels)[kBlock]) {
  nearest_levels<Levels>(x, scale, offset).store(levels);
  settle_drift<Levels>({x}, {scale}, {offset}, columns, levels);
}

// Finds the scale of x = scale * level, and writes the levels.
template <typename Levels>
float search_block(const float* values, const BlockColumns& columns, float (&levels)[kBlock]) {
  const auto x = Group<kBlock>::load(values);
  const auto weights = block_weights(x, columns.importance);
  const float scale = rounded_to_half(fit_scale<Levels>(x, weights).scale);
  choose_levels<Levels>(x, scale, 0, columns, levels);
  return scale;
}

// Finds the scale and the offset of x = scale * level + offset, and writes the levels, which are in
// 0, ..., Top.
template <int Top>
AffineFit search_affine_block(const float* values, const BlockColumns& columns,
                              float (&levels)[kBlock]) {
  const auto x = Group<kBlock>::load(values);
  AffineFit fit = fit_affine<Top, false>(x, block_weights(x, columns.importance));
  fit.scale = rounded_to_half(fit.scale);
  fit.offset = rounded_to_half(fit.offset);
  choose_levels<UniformLevels<0, Top>>(x, fit.scale, fit.offset, columns, levels);
  return fit;
}

// Packs the low four bits of 32 levels: those of element j < 16 into the low nibble of byte j,
// those of element 16 + j into its high nibble.
void pack_nibbles(const uint8_t (&q)[kBlock], uint8_t (&qs)[16]) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>((q[j] & 0x0f) | (q[16 + j] << 4));
  }
}

// Packs the fifth bits of 32 levels: that of element i becomes bit i.
void pack_fifth_bits(const uint8_t (&q)[kBlock], uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof(qh));
  for (int i = 0; i < kBlock; ++i) {
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((q[i] >> 4) << (i % 8)));
  }
}

// Quantises Q4_0, Q4_1, Q5_0 and Q5_1. Formats with the field qh have a fifth bit. Formats with the
// field m are x = d * q + m. In the others the levels lie around 0 (-8, ..., 7 in Q4_0), and q is
// the level plus 8 or 16.
template <typename Block>
void quantize_nibbles(const float* values, const BlockColumns& columns, Block& block) {
  constexpr bool kHasFifthBit = requires { block.qh; };
  constexpr int kTop = kHasFifthBit ? 31 : 15;
  constexpr int kLow = -(kTop + 1) / 2;
  float levels[kBlock];
  if constexpr (requires { block.m; }) {
    const AffineFit found = search_affine_block<kTop>(values, columns, levels);
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
