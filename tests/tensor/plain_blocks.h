// The plain rule by which ggml's reference quantisers round the 32-element formats: tests need
// quantised rows that do not depend on the search in tensor/quantize_row.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "tensor/blocks.h"
#include "tensor/codec.h"

namespace limpid::plain_blocks {

// The element of largest magnitude, the first among equals.
inline float signed_extreme(const float* values) {
  float extreme = values[0];
  for (int i = 1; i < kBlock; ++i) {
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  return extreme;
}

inline float inverse_or_zero(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// Truncates to an integer in [0, limit]; a NaN (an infinite input) becomes 0.
inline uint8_t to_level(float scaled, int limit) {
  if (!(scaled > 0.0f)) return 0;
  return static_cast<uint8_t>(std::min(scaled, static_cast<float>(limit)));
}

// Symmetric: the signed extreme is mapped to level 0, so that the range -offset..offset-1 is used
// in full.
template <int Offset>
Half quantize_symmetric(const float* values, uint8_t (&q)[kBlock]) {
  const float d = signed_extreme(values) / -Offset;
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < kBlock; ++i) {
    q[i] = to_level(values[i] * inverse + (Offset + 0.5f), 2 * Offset - 1);
  }
  return store_u16(f32_to_f16(d));
}

struct ScaleAndMinimum {
  Half d;
  Half m;
};

template <int Levels>
ScaleAndMinimum quantize_affine(const float* values, uint8_t (&q)[kBlock]) {
  const auto [low, high] = std::minmax_element(values, values + kBlock);
  const float d = (*high - *low) / (Levels - 1);
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < kBlock; ++i) {
    q[i] = to_level((values[i] - *low) * inverse + 0.5f, Levels - 1);
  }
  return {store_u16(f32_to_f16(d)), store_u16(f32_to_f16(*low))};
}

inline void pack_nibbles(const uint8_t (&q)[kBlock], uint8_t (&qs)[16]) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>((q[j] & 0x0f) | (q[16 + j] << 4));
  }
}

inline void pack_fifth_bits(const uint8_t (&q)[kBlock], uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof(qh));
  for (int i = 0; i < kBlock; ++i) {
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((q[i] >> 4) << (i % 8)));
  }
}

inline void encode_block(const float* values, BlockQ4_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<8>(values, q);
  pack_nibbles(q, block.qs);
}

inline void encode_block(const float* values, BlockQ4_1& block) {
  uint8_t q[kBlock];
  const ScaleAndMinimum scale = quantize_affine<16>(values, q);
  block.d = scale.d;
  block.m = scale.m;
  pack_nibbles(q, block.qs);
}

inline void encode_block(const float* values, BlockQ5_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<16>(values, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

inline void encode_block(const float* values, BlockQ5_1& block) {
  uint8_t q[kBlock];
  const ScaleAndMinimum scale = quantize_affine<32>(values, q);
  block.d = scale.d;
  block.m = scale.m;
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

inline void encode_block(const float* values, BlockQ8_0& block) {
  const float d = std::fabs(signed_extreme(values)) / 127;
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < kBlock; ++i) {
    const float rounded = std::round(values[i] * inverse);  // half away from zero
    const bool in_range = rounded >= -127.0f && rounded <= 127.0f;
    block.qs[i] = in_range ? static_cast<int8_t>(rounded) : int8_t{0};
  }
  block.d = store_u16(f32_to_f16(d));
}

template <typename Block>
void encode_blocks(std::span<const float> values, std::byte* destination) {
  for (size_t i = 0; i < values.size() / kBlock; ++i) {
    Block block;
    encode_block(values.data() + i * kBlock, block);
    std::memcpy(destination + i * sizeof(Block), &block, sizeof(Block));
  }
}

// As encode_row (tensor/codec.h), and Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 too.
inline void encode(DType dtype, std::span<const float> values, std::byte* destination) {
  switch (dtype) {
    case DType::kQ4_0:
      return encode_blocks<BlockQ4_0>(values, destination);
    case DType::kQ4_1:
      return encode_blocks<BlockQ4_1>(values, destination);
    case DType::kQ5_0:
      return encode_blocks<BlockQ5_0>(values, destination);
    case DType::kQ5_1:
      return encode_blocks<BlockQ5_1>(values, destination);
    case DType::kQ8_0:
      return encode_blocks<BlockQ8_0>(values, destination);
    default:
      return encode_row(dtype, values, destination);
  }
}

}  // namespace limpid::plain_blocks
