// The 32-element formats.
#include "tensor/block_codec.h"
#include "tensor/quantize_block.h"
#include "tensor/quantize_single.h"

namespace limpid {
namespace {

void to_bytes(const float (&levels)[kBlock], uint8_t (&q)[kBlock]) {
  for (int i = 0; i < kBlock; ++i) q[i] = static_cast<uint8_t>(levels[i]);
}

// Finds d of x = d * level and writes q, the levels shifted to begin at 0.
template <typename Levels>
Half quantize_symmetric(const float* values, const BlockColumns& columns, uint8_t (&q)[kBlock]) {
  float levels[kBlock];
  const float d = search_block<Levels>(values, columns, levels);
  for (float& level : levels) level -= Levels::kLow;
  to_bytes(levels, q);
  return to_half(d);
}

// Finds d and m of x = d * q + m, and writes q.
template <int Top, typename Block>
void quantize_affine(const float* values, const BlockColumns& columns, Block& block,
                     uint8_t (&q)[kBlock]) {
  float levels[kBlock];
  const ScaleAndOffset found = search_affine_block<Top>(values, columns, levels);
  to_bytes(levels, q);
  block.d = to_half(found.scale);
  block.m = to_half(found.offset);
}

}  // namespace

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-8, 7>>(values, columns, q);
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ4_1& block) {
  uint8_t q[kBlock];
  quantize_affine<15>(values, columns, block, q);
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_0& block) {
  uint8_t q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-16, 15>>(values, columns, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ5_1& block) {
  uint8_t q[kBlock];
  quantize_affine<31>(values, columns, block, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockQ8_0& block) {
  float levels[kBlock];
  block.d = to_half(search_block<UniformLevels<-127, 127, 5>>(values, columns, levels));
  for (int i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(levels[i]);
}

}  // namespace limpid
