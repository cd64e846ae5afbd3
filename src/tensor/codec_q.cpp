// The 32-element formats: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
//
// Byte j of the nibbles holds element j in its low half and element j + 16 in its high half, so
// that one mask and one shift of 16 bytes give 32 elements in order. The fifth bits of the Q5
// formats are a word of 32 bits, element i in bit i.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/block_codec.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

uint32_t load_u32(const uint8_t (&bytes)[4]) {
  return bytes[0] | (bytes[1] << 8) | (bytes[2] << 16) | (static_cast<uint32_t>(bytes[3]) << 24);
}

// The 32 five-bit values of a Q5 block.
template <typename Block>
void unpack_q5(const Block& block, int32_t (&q)[kBlock]) {
  const uint32_t high = load_u32(block.qh);
  for (int j = 0; j < 16; ++j) {
    q[j] = static_cast<int32_t>((block.qs[j] & 0x0fu) | (((high >> j) & 1u) << 4));
    q[16 + j] = static_cast<int32_t>((block.qs[j] >> 4) | (((high >> (16 + j)) & 1u) << 4));
  }
}

// The element of largest magnitude, the first among equals.
float signed_extreme(const float* values) {
  float extreme = values[0];
  for (int i = 1; i < kBlock; ++i) {
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  return extreme;
}

float inverse_or_zero(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// Truncates to an integer in [0, limit]; a NaN (an infinite input) becomes 0.
uint8_t to_level(float scaled, int limit) {
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

}  // namespace

void pack_nibbles(const uint8_t (&q)[kBlock], uint8_t (&qs)[16]) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>((q[j] & 0x0f) | (q[16 + j] << 4));
  }
}

void pack_fifth_bits(const uint8_t (&q)[kBlock], uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof(qh));
  for (int i = 0; i < kBlock; ++i) {
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((q[i] >> 4) << (i % 8)));
  }
}

void decode_block(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>((block.qs[j] & 0x0f) - 8);
  for (int j = 0; j < 16; ++j) out[16 + j] = d * static_cast<float>((block.qs[j] >> 4) - 8);
}

void decode_block(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  const float m = f16_to_f32(load_u16(block.m));
  for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>(block.qs[j] & 0x0f) + m;
  for (int j = 0; j < 16; ++j) out[16 + j] = d * static_cast<float>(block.qs[j] >> 4) + m;
}

void decode_block(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  int32_t q[kBlock];
  unpack_q5(block, q);
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i] - 16);
}

void decode_block(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  const float m = f16_to_f32(load_u16(block.m));
  int32_t q[kBlock];
  unpack_q5(block, q);
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i]) + m;
}

void decode_block(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

void encode_block(const float* values, BlockQ4_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<8>(values, q);
  pack_nibbles(q, block.qs);
}

void encode_block(const float* values, BlockQ4_1& block) {
  uint8_t q[kBlock];
  const ScaleAndMinimum scale = quantize_affine<16>(values, q);
  block.d = scale.d;
  block.m = scale.m;
  pack_nibbles(q, block.qs);
}

void encode_block(const float* values, BlockQ5_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<16>(values, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void encode_block(const float* values, BlockQ5_1& block) {
  uint8_t q[kBlock];
  const ScaleAndMinimum scale = quantize_affine<32>(values, q);
  block.d = scale.d;
  block.m = scale.m;
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void encode_block(const float* values, BlockQ8_0& block) {
  const float d = std::fabs(signed_extreme(values)) / 127;
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < kBlock; ++i) {
    const float rounded = std::round(values[i] * inverse);  // half away from zero
    const bool in_range = rounded >= -127.0f && rounded <= 127.0f;
    block.qs[i] = in_range ? static_cast<int8_t>(rounded) : int8_t{0};
  }
  block.d = store_u16(f32_to_f16(d));
}

}  // namespace limpid
