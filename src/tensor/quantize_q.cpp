// The 32-element formats.
#include "tensor/quantize_block.h"
#include "tensor/quantize_fit.h"
#include "tensor/quantize_weights.h"

namespace limpid {
namespace {

using Values = Group<kBlock>;

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

// The levels of x / scale, shifted so that the lowest becomes 0.
template <typename Levels>
void to_levels(const Values& x, float scale, float (&q)[kBlock]) {
  const Float4 inverse = all_lanes(scale == 0 ? 0 : 1 / scale);
  Values shifted;
  for (int i = 0; i < Values::kRegisters; ++i) {
    shifted.lanes[i] = Levels::nearest(x.lanes[i] * inverse) - all_lanes(Levels::kLow);
  }
  shifted.store(q);
}

// Finds d of x = d * q and writes q, shifted to begin at 0.
template <typename Levels>
Half quantize_symmetric(const float* values, const float* importance, float (&q)[kBlock]) {
  const Values x = Values::load(values);
  const Values weights = block_weights(x, importance);
  const float d = rounded_to_half(fit_scale<Levels>(x, weights).scale);
  to_levels<Levels>(x, d, q);
  return to_half(d);
}

struct ScaleAndOffset {
  Half d;
  Half m;
};

// Finds d and m of x = d * q + m.
template <int Top>
ScaleAndOffset quantize_affine(const float* values, const float* importance, float (&q)[kBlock]) {
  const Values x = Values::load(values);
  const Values weights = block_weights(x, importance);
  const AffineFit fit = fit_affine<Top, false>(x, weights);
  const float d = rounded_to_half(fit.scale);
  const float m = rounded_to_half(fit.offset);
  Values above;
  for (int i = 0; i < Values::kRegisters; ++i) above.lanes[i] = x.lanes[i] - all_lanes(m);
  to_levels<UniformLevels<0, Top>>(above, d, q);
  return {to_half(d), to_half(m)};
}

}  // namespace

void quantize_block(const float* values, const float* importance, BlockQ4_0& block) {
  float q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-8, 7>>(values, importance, q);
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const float* importance, BlockQ4_1& block) {
  float q[kBlock];
  const ScaleAndOffset found = quantize_affine<15>(values, importance, q);
  block.d = found.d;
  block.m = found.m;
  pack_nibbles(q, block.qs);
}

void quantize_block(const float* values, const float* importance, BlockQ5_0& block) {
  float q[kBlock];
  block.d = quantize_symmetric<UniformLevels<-16, 15>>(values, importance, q);
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const float* importance, BlockQ5_1& block) {
  float q[kBlock];
  const ScaleAndOffset found = quantize_affine<31>(values, importance, q);
  block.d = found.d;
  block.m = found.m;
  pack_nibbles(q, block.qs);
  pack_fifth_bits(q, block.qh);
}

void quantize_block(const float* values, const float* importance, BlockQ8_0& block) {
  using Levels = UniformLevels<-127, 127, 5>;
  float q[kBlock];
  block.d = quantize_symmetric<Levels>(values, importance, q);
  for (int i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(q[i] + Levels::kLow);
}

}  // namespace limpid
