// The 32-element formats.
#include "tensor/quantize_block.h"
#include "tensor/quantize_single.h"

namespace limpid {
namespace {

void pack_nibbles(const float (&q)[kBlock], uint8_t (&qs)[16]) {
  for (int j = 0; j < 16; ++j) {
    const auto low = static_cast<unsigned>(q[j]);
    const auto high = static_cast<unsigned>(q[16 + j]);
    qs[j] = static_cast<uint8_t>((low & 0x0fU) | ((high & 0x0fU) << 4));
  }
}

void pack_fifth_bits(const float (&q)[kBlock], uint8_t (&qh)[4]) {
  for (int byte = 0; byte < 4; ++byte) {
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i) bits |= (static_cast<unsigned>(q[8 * byte + i]) >> 4) << i;
    qh[byte] = static_cast<uint8_t>(bits);
  }
}

// Finds d of x = d * level and writes q, the levels shifted to begin at 0.
template <typename Levels>
Half quantize_symmetric(const float* values, const BlockColumns& columns, float (&q)[kBlock]) {
  const float d = search_block<Levels>(values, columns, q);
  for (float& level : q) level -= Levels::kLow;
  return to_half(d);
}

}  // namespace

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_0& block) {
  float q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-8, 7>>(values, columns, q);
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_1& block) {
  float q[kBlock];
  const ScaleAndOffset found = search_affine_block<15>(values, columns, q);
  block.d = to_half(found.scale);
  block.m = to_half(found.offset);
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_0& block) {
  float q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-16, 15>>(values, columns, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_1& block) {
  float q[kBlock];
  const ScaleAndOffset found = search_affine_block<31>(values, columns, q);
  block.d = to_half(found.scale);
  block.m = to_half(found.offset);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ8_0& block) {
  float levels[kBlock];
  block.d = to_half(search_block<UniformLevels<-127, 127, 5>>(values, columns, levels));
  for (int i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(levels[i]);
}

}  // namespace limpid
