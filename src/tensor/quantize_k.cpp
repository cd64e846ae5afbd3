// Packs the levels and scales that quantize_super_block.h finds into the K formats and IQ4_XS.
// blocks.h has the layouts.
#include <cstring>

#include "tensor/quantize_block.h"
#include "tensor/quantize_super_block.h"

namespace limpid {
namespace {

// q = level - lowest.
void to_codes(const float (&levels)[kSuperBlock], float lowest, uint8_t (&q)[kSuperBlock]) {
  for (int i = 0; i < kSuperBlock; ++i) q[i] = static_cast<uint8_t>(levels[i] - lowest);
}

// Each byte gets bits 0 and 1 of four elements that are 32 apart.
void pack_two_bits(const uint8_t (&q)[kSuperBlock], uint8_t (&qs)[64]) {
  for (int h = 0; h < 2; ++h) {
    for (int l = 0; l < 32; ++l) {
      unsigned bits = 0;
      for (int s = 0; s < 4; ++s) bits |= (q[128 * h + 32 * s + l] & 3U) << (2 * s);
      qs[32 * h + l] = static_cast<uint8_t>(bits);
    }
  }
}

// Each byte gets the low four bits of two elements that are 32 apart.
void pack_nibbles(const uint8_t (&q)[kSuperBlock], uint8_t (&qs)[128]) {
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < 32; ++l) {
      qs[32 * c + l] =
          static_cast<uint8_t>((q[64 * c + l] & 0x0fU) | ((q[64 * c + 32 + l] & 0x0fU) << 4));
    }
  }
}

// Bit `bit` of element 32i + l becomes bit i of byte l.
void pack_bit(const uint8_t (&q)[kSuperBlock], int bit, uint8_t (&bytes)[32]) {
  for (int l = 0; l < 32; ++l) {
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i) bits |= ((q[32 * i + l] >> bit) & 1U) << i;
    bytes[l] = static_cast<uint8_t>(bits);
  }
}

// The inverse of unpack_group_scales.
void pack_group_scales(const SuperBlock<32>& block, uint8_t (&packed)[12]) {
  for (int i = 0; i < 4; ++i) {
    const auto scale = static_cast<unsigned>(block.scale[i]);
    const auto minimum = static_cast<unsigned>(block.minimum[i]);
    const auto late_scale = static_cast<unsigned>(block.scale[4 + i]);
    const auto late_minimum = static_cast<unsigned>(block.minimum[4 + i]);
    packed[i] = static_cast<uint8_t>(scale | ((late_scale >> 4) << 6));
    packed[4 + i] = static_cast<uint8_t>(minimum | ((late_minimum >> 4) << 6));
    packed[8 + i] = static_cast<uint8_t>((late_scale & 0x0fU) | ((late_minimum & 0x0fU) << 4));
  }
}

// Quantises Q4_K, and Q5_K, which has a fifth bit.
template <int Top, typename Block>
void quantize_groups(const float* values, const BlockColumns& columns, Block& block) {
  using Integers = UniformLevels<0, 63>;
  float levels[kSuperBlock];
  uint8_t q[kSuperBlock];
  const auto found =
      search_super_block<UniformLevels<0, Top>, Integers, Integers, 32>(values, columns, levels);
  to_codes(levels, 0, q);
  block.d = to_half(found.d);
  block.dmin = to_half(found.dmin);
  pack_group_scales(found, block.scales);
  pack_nibbles(q, block.qs);
  if constexpr (requires { block.qh; }) pack_bit(q, 4, block.qh);
}

}  // namespace

void quantize_block(const float* values, const BlockColumns& columns, BlockQ2_K& block) {
  using Integers = UniformLevels<0, 15>;
  float levels[kSuperBlock];
  uint8_t q[kSuperBlock];
  const auto found =
      search_super_block<UniformLevels<0, 3>, Integers, Integers, 16>(values, columns, levels);
  to_codes(levels, 0, q);
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<uint8_t>(static_cast<unsigned>(found.scale[g]) |
                                           (static_cast<unsigned>(found.minimum[g]) << 4));
  }
  block.d = to_half(found.d);
  block.dmin = to_half(found.dmin);
  pack_two_bits(q, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ3_K& block) {
  float levels[kSuperBlock];
  const auto found = search_super_block<UniformLevels<-4, 3>, UniformLevels<-32, 31>, NoMinima, 16>(
      values, columns, levels);
  uint8_t q[kSuperBlock];
  to_codes(levels, -4, q);
  pack_two_bits(q, block.qs);
  pack_bit(q, 2, block.hmask);
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int g = 0; g < 16; ++g) {
    const auto scale = static_cast<unsigned>(found.scale[g] + 32);
    block.scales[g % 8] =
        static_cast<uint8_t>(block.scales[g % 8] | ((scale & 0x0fU) << (g < 8 ? 0 : 4)));
    block.scales[8 + g % 4] =
        static_cast<uint8_t>(block.scales[8 + g % 4] | ((scale >> 4) << (2 * (g / 4))));
  }
  block.d = to_half(found.d);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_K& block) {
  quantize_groups<15>(values, columns, block);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_K& block) {
  quantize_groups<31>(values, columns, block);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ6_K& block) {
  float levels[kSuperBlock];
  const auto found =
      search_super_block<UniformLevels<-32, 31>, UniformLevels<-128, 127>, NoMinima, 16>(
          values, columns, levels);
  uint8_t q[kSuperBlock];
  to_codes(levels, -32, q);
  for (int l = 0; l < 128; ++l) {
    const uint8_t* low = q + l + l / 64 * 64;  // its partner is 64 elements later
    block.ql[l] = static_cast<uint8_t>((low[0] & 0x0fU) | ((low[64] & 0x0fU) << 4));
  }
  for (uint8_t& code : q) code >>= 4;
  pack_two_bits(q, block.qh);
  for (int g = 0; g < 16; ++g) block.scales[g] = static_cast<int8_t>(found.scale[g]);
  block.d = to_half(found.d);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockIQ4_XS& block) {
  float levels[kSuperBlock];
  const auto found = search_super_block<UnevenLevels, UniformLevels<-32, 31>, NoMinima, 32>(
      values, columns, levels);
  unsigned high = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int g = 0; g < 8; ++g) {
    const auto scale = static_cast<unsigned>(found.scale[g] + 32);
    block.scales_l[g / 2] =
        static_cast<uint8_t>(block.scales_l[g / 2] | ((scale & 0x0fU) << (4 * (g % 2))));
    high |= (scale >> 4) << (2 * g);
    pack_iq4_indices(levels + 32 * g, block.qs + 16 * g);
  }
  block.scales_h = store_u16(static_cast<uint16_t>(high));
  block.d = to_half(found.d);
}

}  // namespace limpid
