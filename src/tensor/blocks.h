// ggml's block formats, byte for byte as files hold them. A block is `block_size` consecutive
// elements of one row that share scales; quantised values are called q. Every struct has alignment
// 1, so a block may lie anywhere in a file.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "tensor/dtype.h"

namespace limpid {

inline constexpr int kBlock = 32;        // elements in a block of the 32-element formats
inline constexpr int kSuperBlock = 256;  // elements in a block of the K formats and of IQ4_XS

// A little-endian u16, usually the bits of a half-precision scale.
using Half = std::array<uint8_t, 2>;
constexpr uint16_t load_u16(const Half& half) {
  return static_cast<uint16_t>(half[0] | (half[1] << 8));
}
constexpr Half store_u16(uint16_t bits) {
  return {static_cast<uint8_t>(bits & 0xff), static_cast<uint8_t>(bits >> 8)};
}

// x = d * (q - 8). Element j < 16 is the low nibble of qs[j], element 16 + j its high nibble.
struct BlockQ4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  Half d;
  uint8_t qs[16];
};

// x = d * q + m.
struct BlockQ4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  Half d;
  Half m;
  uint8_t qs[16];
};

// x = d * (q - 16). Bit i of qh is the fifth bit of element i.
struct BlockQ5_0 {
  static constexpr DType kDType = DType::kQ5_0;
  Half d;
  uint8_t qh[4];
  uint8_t qs[16];
};

// x = d * q + m.
struct BlockQ5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  Half d;
  Half m;
  uint8_t qh[4];
  uint8_t qs[16];
};

// x = d * q.
struct BlockQ8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  Half d;
  int8_t qs[32];
};

// x = (d * scale) * q - (dmin * minimum), 16 groups of 16: scales[g] holds the scale in the low and
// the minimum in the high nibble. Element 128h + 32s + l is bits 2s of qs[32h + l].
struct BlockQ2_K {
  static constexpr DType kDType = DType::kQ2_K;
  uint8_t scales[16];
  uint8_t qs[64];
  Half d;
  Half dmin;
};

// x = (d * (scale - 32)) * (q - 4), 16 groups of 16. Low two bits of q as in Q2_K; its third bit,
// of element 32s + l, is bit s of hmask[l].
struct BlockQ3_K {
  static constexpr DType kDType = DType::kQ3_K;
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  Half d;
};

// x = (d * scale) * q - (dmin * minimum), 8 groups of 32 whose 6-bit scales and minima share 12
// bytes. Element 64c + 32s + l is nibble s of qs[32c + l].
struct BlockQ4_K {
  static constexpr DType kDType = DType::kQ4_K;
  Half d;
  Half dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};

// As Q4_K; the fifth bit of element 32i + l is bit i of qh[l].
struct BlockQ5_K {
  static constexpr DType kDType = DType::kQ5_K;
  Half d;
  Half dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};

// x = (d * scale) * (q - 32), 16 groups of 16. Element 128h + 64s + l has its low four bits in
// nibble s of ql[64h + l]; element 128h + 32t + l has its high two in bits 2t of qh[32h + l].
struct BlockQ6_K {
  static constexpr DType kDType = DType::kQ6_K;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  Half d;
};

// The sixteen levels of the IQ4 formats, as ggml defines them: closer together near 0, where most
// weights are.
inline constexpr std::array<int8_t, 16> kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// x = d * kIq4Levels[q]; nibbles as in Q4_0.
struct BlockIQ4_NL {
  static constexpr DType kDType = DType::kIQ4_NL;
  Half d;
  uint8_t qs[16];
};

// x = (d * (scale - 32)) * kIq4Levels[q], 8 groups of 32: the low four bits of scale b are nibble b
// of scales_l, its high two are bits 2b of scales_h. Element 32b + 16s + l is nibble s of qs[16b +
// l].
struct BlockIQ4_XS {
  static constexpr DType kDType = DType::kIQ4_XS;
  Half d;
  Half scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};

// The 6-bit scale and minimum of each of the 8 groups of a Q4_K or Q5_K block, packed into 12
// bytes. Those of the first four groups are the low six bits of bytes 0-3 (scales) and 4-7
// (minima). Those of the last four have their low four bits in bytes 8-11 (scale in the low nibble,
// minimum in the high one) and their high two bits at the top of bytes 0-7.
struct GroupScales {
  uint8_t scale[8];
  uint8_t minimum[8];
};
constexpr GroupScales unpack_group_scales(const uint8_t (&packed)[12]) {
  GroupScales groups{};
  for (int i = 0; i < 4; ++i) {
    groups.scale[i] = packed[i] & 0x3f;
    groups.minimum[i] = packed[4 + i] & 0x3f;
    groups.scale[4 + i] = static_cast<uint8_t>((packed[8 + i] & 0x0f) | ((packed[i] >> 6) << 4));
    groups.minimum[4 + i] =
        static_cast<uint8_t>((packed[8 + i] >> 4) | ((packed[4 + i] >> 6) << 4));
  }
  return groups;
}

// The sixteen signed scales of a Q3_K block, each 6 bits less 32: the low four bits are in the
// nibbles of bytes 0-7, the high two in bytes 8-11.
constexpr std::array<int8_t, 16> unpack_q3_scales(const uint8_t (&packed)[12]) {
  std::array<int8_t, 16> scales{};
  for (int i = 0; i < 16; ++i) {
    const int low = (i < 8 ? packed[i] : packed[i - 8] >> 4) & 0x0f;
    const int high = (packed[8 + i % 4] >> (2 * (i / 4))) & 3;
    scales[i] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
  return scales;
}

// Calls visit(block) with an empty block of the quantised type `dtype`, so that one template serves
// all formats. Without a call for a type without blocks.
template <typename Visit>
void visit_block_type(DType dtype, Visit&& visit) {
  const auto try_type = [&](const auto& block) {
    if (block.kDType == dtype) visit(block);
  };
  std::apply([&](const auto&... blocks) { (try_type(blocks), ...); },
             std::tuple<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ2_K, BlockQ3_K,
                        BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ4_NL, BlockIQ4_XS>{});
}

}  // namespace limpid
