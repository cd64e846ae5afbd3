// The formats with unevenly spaced levels: IQ4_NL, IQ4_XS.
#include <cstring>

#include "tensor/quantize_block.h"
#include "tensor/quantize_single.h"
#include "tensor/quantize_super_block.h"

namespace limpid {
namespace {

// Element j and element j + 16 of a group to byte j.
void pack_indices(const float* levels, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>(index_of_iq4_level(levels[j]) |
                                 (index_of_iq4_level(levels[16 + j]) << 4));
  }
}

}  // namespace

void quantize_block(const float* values, const BlockColumns& columns, BlockIQ4_NL& block) {
  float levels[kBlock];
  block.d = to_half(search_block<UnevenLevels>(values, columns, levels));
  pack_indices(levels, block.qs);
}

void quantize_block(const float* values, const BlockColumns& columns, BlockIQ4_XS& block) {
  float levels[kSuperBlock];
  const auto found =
      search_symmetric<UnevenLevels, UniformLevels<-32, 31>, 32>(values, columns, levels);
  unsigned high = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int g = 0; g < 8; ++g) {
    const auto scale = static_cast<unsigned>(found.scale[g] + 32);
    block.scales_l[g / 2] =
        static_cast<uint8_t>(block.scales_l[g / 2] | ((scale & 0x0fU) << (4 * (g % 2))));
    high |= (scale >> 4) << (2 * g);
    pack_indices(levels + 32 * g, block.qs + 16 * g);
  }
  block.scales_h = store_u16(static_cast<uint16_t>(high));
  block.d = to_half(found.d);
}

}  // namespace limpid
