// The 32-element formats: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
//
// Byte j of the nibbles holds element j in its low half and element j + 16 in its high half, so
// that one mask and one shift of 16 bytes give 32 elements in order. The fifth bits of the Q5
// formats are a word of 32 bits, element i in bit i.
#include "tensor/block_codec.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

uint32_t load_u32(const uint8_t (&bytes)[4]) {
  return bytes[0] | (bytes[1] << 8) | (bytes[2] << 16) | (static_cast<uint32_t>(bytes[3]) << 24);
}

// Decodes the four formats with nibbles. Formats with the field qh have a fifth bit. Formats with
// the field m have a minimum; in the others the levels lie around 0.
template <typename Block>
void decode_nibbles(const Block& block, float* out) {
  int32_t q[kBlock];
  for (int j = 0; j < 16; ++j) {
    q[j] = block.qs[j] & 0x0f;
    q[16 + j] = block.qs[j] >> 4;
  }
  constexpr bool kHasFifthBit = requires { block.qh; };
  if constexpr (kHasFifthBit) {
    const uint32_t high = load_u32(block.qh);
    for (int i = 0; i < kBlock; ++i) q[i] |= static_cast<int32_t>((high >> i) & 1u) << 4;
  }
  const float d = f16_to_f32(load_u16(block.d));
  if constexpr (requires { block.m; }) {
    const float m = f16_to_f32(load_u16(block.m));
    for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i]) + m;
  } else {
    constexpr int32_t kMiddle = kHasFifthBit ? 16 : 8;
    for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i] - kMiddle);
  }
}

}  // namespace

void decode_block(const BlockQ4_0& block, float* out) { decode_nibbles(block, out); }
void decode_block(const BlockQ4_1& block, float* out) { decode_nibbles(block, out); }
void decode_block(const BlockQ5_0& block, float* out) { decode_nibbles(block, out); }
void decode_block(const BlockQ5_1& block, float* out) { decode_nibbles(block, out); }

void decode_block(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

}  // namespace limpid
