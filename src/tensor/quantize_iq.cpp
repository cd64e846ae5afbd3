// The formats with unevenly spaced levels: IQ4_NL, IQ4_XS.
#include <array>
#include <cstring>

#include "tensor/quantize_block.h"
#include "tensor/quantize_super_block.h"

namespace limpid {
namespace {

// The index of each of the levels -127, ..., 113, by level + 127.
constexpr auto kIndexOfLevel = [] {
  std::array<uint8_t, 241> index{};
  for (size_t i = 0; i < kIq4Levels.size(); ++i) {
    index[static_cast<size_t>(kIq4Levels[i] + 127)] = static_cast<uint8_t>(i);
  }
  return index;
}();

unsigned index_of(int8_t level) { return kIndexOfLevel[static_cast<size_t>(level + 127)]; }

}  // namespace

void quantize_block(const float* values, const float* importance, BlockIQ4_NL& block) {
  using Values = Group<kBlock>;
  const Values x = Values::load(values);
  const Values weights = block_weights(x, importance);
  const float d = rounded_to_half(fit_scale<UnevenLevels>(x, weights).scale);
  const Float4 inverse = all_lanes(d == 0 ? 0 : 1 / d);
  float levels[kBlock];
  Values nearest;
  for (int i = 0; i < Values::kRegisters; ++i) {
    nearest.lanes[i] = UnevenLevels::nearest(x.lanes[i] * inverse);
  }
  nearest.store(levels);
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = static_cast<uint8_t>(index_of(static_cast<int8_t>(levels[j])) |
                                       (index_of(static_cast<int8_t>(levels[16 + j])) << 4));
  }
  block.d = to_half(d);
}

void quantize_block(const float* values, const float* importance, BlockIQ4_XS& block) {
  int8_t levels[kSuperBlock];
  const auto found = search_symmetric<UnevenLevels, UniformLevels<-32, 31>>(
      WeighedGroups<32>(values, importance), levels);
  unsigned high = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int g = 0; g < 8; ++g) {
    const auto scale = static_cast<unsigned>(found.scale[g] + 32);
    block.scales_l[g / 2] =
        static_cast<uint8_t>(block.scales_l[g / 2] | ((scale & 0x0fU) << (4 * (g % 2))));
    high |= (scale >> 4) << (2 * g);
    for (int j = 0; j < 16; ++j) {
      block.qs[16 * g + j] = static_cast<uint8_t>(index_of(levels[32 * g + j]) |
                                                  (index_of(levels[32 * g + 16 + j]) << 4));
    }
  }
  block.scales_h = store_u16(static_cast<uint16_t>(high));
  block.d = to_half(found.d);
}

}  // namespace limpid
