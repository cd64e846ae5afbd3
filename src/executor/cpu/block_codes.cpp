#include "executor/cpu/block_codes.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "tensor/blocks.h"

namespace limpid {
namespace {

constexpr std::pair<DType, PackedFormat> kPackedFormats[] = {
    {DType::kQ4_0, PackedFormat::kQ4_0},   {DType::kQ4_1, PackedFormat::kQ4_1},
    {DType::kQ5_0, PackedFormat::kQ8_0},   {DType::kQ5_1, PackedFormat::kQ5_1},
    {DType::kQ8_0, PackedFormat::kQ8_0},   {DType::kQ2_K, PackedFormat::kQ2_K},
    {DType::kQ3_K, PackedFormat::kQ6_K},   {DType::kQ4_K, PackedFormat::kQ4_K},
    {DType::kQ5_K, PackedFormat::kQ5_K},   {DType::kQ6_K, PackedFormat::kQ6_K},
    {DType::kIQ4_NL, PackedFormat::kQ8_0}, {DType::kIQ4_XS, PackedFormat::kIQ4_XS},
};

// Elements 0 .. 15 from the low, 16 .. 31 from the high nibbles of 16 bytes.
void take_nibbles(const uint8_t (&qs)[16], uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = qs[i] & 0x0f;
    codes[16 + i] = qs[i] >> 4;
  }
}

void take_fifth_bits(const uint8_t (&qh)[4], uint8_t* codes, int first_code) {
  for (int i = 0; i < 32; ++i) {
    const int high = (qh[i / 8] >> (i % 8)) & 1;
    codes[i] = static_cast<uint8_t>(codes[i] + 16 * high + first_code);
  }
}

// The codes of a block of 32.
template <class Block>
void take_codes(const Block& block, uint8_t* codes) {
  take_nibbles(block.qs, codes);
  // Without a minimum the code is q - 16, as (q + 112) - 128.
  if constexpr (requires { block.qh; })
    take_fifth_bits(
        block.qh, codes, requires { block.m; } ? 0 : 112);
}

void take_codes(const BlockQ8_0& block, uint8_t* codes) {
  for (int k = 0; k < kBlock; ++k) codes[k] = static_cast<uint8_t>(block.qs[k] + 128);
}

void take_codes(const BlockIQ4_NL& block, uint8_t* codes) {
  take_nibbles(block.qs, codes);
  for (int k = 0; k < kBlock; ++k) codes[k] = static_cast<uint8_t>(kIq4Levels[codes[k]] + 128);
}

void take_super_block(const BlockQ2_K& block, BlockCodes& out) {
  for (int group = 0; group < 16; ++group) {
    out.int_scale[group] = block.scales[group] & 0x0f;
    out.int_minimum[group] = block.scales[group] >> 4;
    const uint8_t* qs = block.qs + group / 8 * 32 + group % 2 * 16;
    const int shift = 2 * (group / 2 % 4);
    for (int k = 0; k < 16; ++k) out.codes[group * 16 + k] = (qs[k] >> shift) & 3;
  }
}

// q - 4 as (q + 28) - 32.
void take_super_block(const BlockQ3_K& block, BlockCodes& out) {
  const auto scales = unpack_q3_scales(block.scales);
  for (int group = 0; group < 16; ++group) {
    out.int_scale[group] = static_cast<uint8_t>(scales[group]);
    const uint8_t* qs = block.qs + group / 8 * 32 + group % 2 * 16;
    const uint8_t* hmask = block.hmask + group % 2 * 16;
    const int shift = 2 * (group / 2 % 4);
    for (int k = 0; k < 16; ++k) {
      const int q = ((qs[k] >> shift) & 3) | (((hmask[k] >> (group / 2)) & 1) << 2);
      out.codes[group * 16 + k] = static_cast<uint8_t>(q + 28);
    }
  }
}

void take_group_scales(const uint8_t (&packed)[12], BlockCodes& out) {
  const GroupScales groups = unpack_group_scales(packed);
  std::memcpy(out.int_scale, groups.scale, 8);
  std::memcpy(out.int_minimum, groups.minimum, 8);
}

void take_super_block(const BlockQ4_K& block, BlockCodes& out) {
  take_group_scales(block.scales, out);
  for (int pair = 0; pair < 4; ++pair) {
    for (int k = 0; k < 32; ++k) {
      const uint8_t q = block.qs[pair * 32 + k];
      out.codes[pair * 64 + k] = q & 0x0f;
      out.codes[pair * 64 + 32 + k] = q >> 4;
    }
  }
}

void take_super_block(const BlockQ5_K& block, BlockCodes& out) {
  take_group_scales(block.scales, out);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* qs = block.qs + group / 2 * 32;
    for (int k = 0; k < 32; ++k) {
      const int low = (qs[k] >> (4 * (group % 2))) & 0x0f;
      out.codes[group * 32 + k] = static_cast<uint8_t>(low | (((block.qh[k] >> group) & 1) << 4));
    }
  }
}

void take_super_block(const BlockQ6_K& block, BlockCodes& out) {
  std::memcpy(out.int_scale, block.scales, 16);
  for (int quarter = 0; quarter < 8; ++quarter) {  // 32 columns each
    const uint8_t* ql = block.ql + quarter / 4 * 64 + quarter % 2 * 32;
    const uint8_t* qh = block.qh + quarter / 4 * 32;
    const int low_shift = 4 * (quarter / 2 % 2);
    const int high_shift = 2 * (quarter % 4);
    for (int k = 0; k < 32; ++k) {
      const int low = (ql[k] >> low_shift) & 0x0f;
      out.codes[quarter * 32 + k] = static_cast<uint8_t>(low | (((qh[k] >> high_shift) & 3) << 4));
    }
  }
}

void take_super_block(const BlockIQ4_XS& block, BlockCodes& out) {
  const uint16_t scales_h = load_u16(block.scales_h);
  for (int group = 0; group < 8; ++group) {
    const int low = (block.scales_l[group / 2] >> (4 * (group % 2))) & 0x0f;
    const int scale = (low | (((scales_h >> (2 * group)) & 3) << 4)) - 32;
    out.int_scale[group] = static_cast<uint8_t>(scale);
    for (int k = 0; k < 16; ++k) {
      const uint8_t q = block.qs[group * 16 + k];
      out.codes[group * 32 + k] = static_cast<uint8_t>(kIq4Levels[q & 0x0f] + 128);
      out.codes[group * 32 + 16 + k] = static_cast<uint8_t>(kIq4Levels[q >> 4] + 128);
    }
  }
}

template <class Block>
BlockCodes take_blocks(const std::byte* source, int64_t n_cols) {
  BlockCodes out{};
  const int64_t block_cols = dtype_info(Block::kDType).block_size;
  for (int i = 0; i < n_cols / block_cols; ++i) {
    Block block;
    std::memcpy(&block, source + i * sizeof(Block), sizeof(Block));
    out.scale[i] = load_u16(block.d);
    if constexpr (requires { block.m; }) out.minimum[i] = load_u16(block.m);
    if constexpr (requires { block.dmin; }) out.minimum[i] = load_u16(block.dmin);
    if constexpr (requires { take_super_block(block, out); })
      take_super_block(block, out);
    else
      take_codes(block, out.codes + i * kBlock);
  }
  return out;
}

}  // namespace

PackedFormat packed_format(DType dtype) {
  for (const auto& [type, format] : kPackedFormats) {
    if (type == dtype) return format;
  }
  throw UnsupportedError(fmt::format(
      "[PackedWeight] {} is not a block-quantised type; use it as it is", dtype_info(dtype).name));
}

BlockCodes take_apart(DType dtype, const std::byte* source, int64_t n_cols) {
  BlockCodes out{};
  visit_block_type(dtype,
                   [&]<typename Block>(const Block&) { out = take_blocks<Block>(source, n_cols); });
  return out;
}

}  // namespace limpid
