// The formats with unevenly spaced levels: IQ4_NL, IQ4_XS.
#include "tensor/block_codec.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Sixteen bytes of nibbles to 32 elements.
void decode_levels(float scale, const uint8_t* qs, float* out) {
  for (int l = 0; l < 16; ++l) {
    out[l] = scale * static_cast<float>(kIq4Levels[qs[l] & 0x0f]);
    out[16 + l] = scale * static_cast<float>(kIq4Levels[qs[l] >> 4]);
  }
}

}  // namespace

void decode_block(const BlockIQ4_NL& block, float* out) {
  decode_levels(f16_to_f32(load_u16(block.d)), block.qs, out);
}

void decode_block(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(load_u16(block.d));
  const unsigned high = load_u16(block.scales_h);
  for (int group = 0; group < 8; ++group) {
    const unsigned low = (block.scales_l[group / 2] >> (4 * (group % 2))) & 0x0fu;
    const auto scale = static_cast<int>(low | (((high >> (2 * group)) & 3u) << 4)) - 32;
    decode_levels(d * static_cast<float>(scale), block.qs + group * 16, out + group * 32);
  }
}

}  // namespace limpid
