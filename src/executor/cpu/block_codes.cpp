#include "executor/cpu/block_codes.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "tensor/blocks.h"

namespace limpid {
namespace {

constexpr std::pair<DType, PackedFormat> kPackedFormats[] = {
    {DType::kQ4_0, PackedFormat::kQ4_0},     {DType::kQ4_1, PackedFormat::kQ4_1},
    {DType::kQ5_0, PackedFormat::kQ5_0},     {DType::kQ5_1, PackedFormat::kQ5_1},
    {DType::kQ8_0, PackedFormat::kQ8_0},     {DType::kQ2_K, PackedFormat::kQ2_K},
    {DType::kQ3_K, PackedFormat::kQ3_K},     {DType::kQ4_K, PackedFormat::kQ4_K},
    {DType::kQ5_K, PackedFormat::kQ5_K},     {DType::kQ6_K, PackedFormat::kQ6_K},
    {DType::kIQ4_NL, PackedFormat::kIQ4_NL}, {DType::kIQ4_XS, PackedFormat::kIQ4_XS},
};

constexpr bool levels_are_those_of_the_file() {
  for (size_t i = 0; i < kIq4Levels.size(); ++i) {
    if (kLevels[i] != kIq4Levels[i] + 128 || kLevels[i] != kLowDigits[i] + 16 * kHighDigits[i])
      return false;
  }
  return true;
}
static_assert(levels_are_those_of_the_file());

// Writes n codes, of which word(k) gives those from k on.
template <class Word>
void write_codes(uint8_t* codes, int n, const Word& word) {
  for (int k = 0; k < n; k += 8) store8(word(k), codes + k);
}

// Codes from the low nibbles of n bytes, and then from the high ones.
void take_nibbles(const uint8_t* qs, int n, uint8_t* codes) {
  write_codes(codes, n, [&](int k) { return load8(qs + k) & each(0x0f); });
  write_codes(codes + n, n, [&](int k) { return load8(qs + k) >> 4 & each(0x0f); });
}

// Bit j of a byte of qh is the fifth bit of code j. Each of eight bytes gets a copy of the byte and
// keeps only the bit of its own code. Adding 0x7f carries that bit, wherever it is, into the
// highest bit, which is then shifted down to the fifth. Example: the byte 0b101 of qh, for codes 0
// and 2, becomes 01 00 04 00 …, with 0x7f added 80 7f 83 7f …, and at last 10 00 10 00 ….
void add_fifth_bits(const uint8_t (&qh)[4], uint8_t* codes) {
  write_codes(codes, kBlock, [&](int k) {
    const uint64_t bits = each(qh[k / 8]) & 0x8040201008040201;
    const uint64_t fifth = ((bits + each(0x7f)) & each(0x80)) >> 3;
    return load8(codes + k) | fifth;
  });
}

// The codes of a block of 32.
template <class Block>
void take_codes(const Block& block, uint8_t* codes) {
  take_nibbles(block.qs, 16, codes);
  if constexpr (requires { block.qh; }) add_fifth_bits(block.qh, codes);
}

void take_codes(const BlockQ8_0& block, uint8_t* codes) {
  std::memcpy(codes, block.qs, kBlock);
  write_codes(codes, kBlock, [&](int k) { return load8(codes + k) ^ each(0x80); });  // q + 128
}

void take_super_block(const BlockQ2_K& block, BlockCodes& out) {
  for (int group = 0; group < 16; ++group) {
    out.int_scale[group] = block.scales[group] & 0x0f;
    out.int_minimum[group] = block.scales[group] >> 4;
    const uint8_t* qs = block.qs + group / 8 * 32 + group % 2 * 16;
    const int shift = 2 * (group / 2 % 4);
    write_codes(out.codes + group * 16, 16,
                [&](int k) { return load8(qs + k) >> shift & each(3); });
  }
}

void take_super_block(const BlockQ3_K& block, BlockCodes& out) {
  const auto scales = unpack_q3_scales(block.scales);
  for (int group = 0; group < 16; ++group) {
    out.int_scale[group] = static_cast<uint8_t>(scales[group]);
    const uint8_t* qs = block.qs + group / 8 * 32 + group % 2 * 16;
    const uint8_t* hmask = block.hmask + group % 2 * 16;
    const int shift = 2 * (group / 2 % 4);
    write_codes(out.codes + group * 16, 16, [&](int k) {
      const uint64_t third = load8(hmask + k) >> (group / 2) & each(1);
      return (load8(qs + k) >> shift & each(3)) | third << 2;
    });
  }
}

void take_group_scales(const uint8_t (&packed)[12], BlockCodes& out) {
  const GroupScales groups = unpack_group_scales(packed);
  std::memcpy(out.int_scale, groups.scale, 8);
  std::memcpy(out.int_minimum, groups.minimum, 8);
}

void take_super_block(const BlockQ4_K& block, BlockCodes& out) {
  take_group_scales(block.scales, out);
  for (int pair = 0; pair < 4; ++pair)
    take_nibbles(block.qs + pair * 32, 32, out.codes + pair * 64);
}

void take_super_block(const BlockQ5_K& block, BlockCodes& out) {
  take_group_scales(block.scales, out);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* qs = block.qs + group / 2 * 32;
    write_codes(out.codes + group * 32, 32, [&](int k) {
      const uint64_t fifth = load8(block.qh + k) >> group & each(1);
      return (load8(qs + k) >> (4 * (group % 2)) & each(0x0f)) | fifth << 4;
    });
  }
}

void take_super_block(const BlockQ6_K& block, BlockCodes& out) {
  std::memcpy(out.int_scale, block.scales, 16);
  for (int quarter = 0; quarter < 8; ++quarter) {  // 32 columns each
    const uint8_t* ql = block.ql + quarter / 4 * 64 + quarter % 2 * 32;
    const uint8_t* qh = block.qh + quarter / 4 * 32;
    const int low_shift = 4 * (quarter / 2 % 2);
    const int high_shift = 2 * (quarter % 4);
    write_codes(out.codes + quarter * 32, 32, [&](int k) {
      const uint64_t high = load8(qh + k) >> high_shift & each(3);
      return (load8(ql + k) >> low_shift & each(0x0f)) | high << 4;
    });
  }
}

void take_super_block(const BlockIQ4_XS& block, BlockCodes& out) {
  const uint16_t scales_h = load_u16(block.scales_h);
  for (int group = 0; group < 8; ++group) {
    const int low = (block.scales_l[group / 2] >> (4 * (group % 2))) & 0x0f;
    const int scale = (low | (((scales_h >> (2 * group)) & 3) << 4)) - 32;
    out.int_scale[group] = static_cast<uint8_t>(scale);
    take_nibbles(block.qs + group * 16, 16, out.codes + group * 32);
  }
}

template <class Block>
void take_blocks(const std::byte* source, int64_t n_cols, BlockCodes& out) {
  constexpr bool kIsSuperBlock = requires(const Block& block) { take_super_block(block, out); };
  constexpr int64_t kBlockCols = kIsSuperBlock ? 256 : kBlock;
  // A superblock of the layout is one such block or two blocks of 32, of which a row may end with
  // the first.
  if (!kIsSuperBlock && n_cols == kBlock) out = {};
  for (int i = 0; i < n_cols / kBlockCols; ++i) {
    Block block;
    std::memcpy(&block, source + i * sizeof(Block), sizeof(Block));
    out.scale[i] = load_u16(block.d);
    if constexpr (requires { block.m; }) out.minimum[i] = load_u16(block.m);
    if constexpr (requires { block.dmin; }) out.minimum[i] = load_u16(block.dmin);
    if constexpr (kIsSuperBlock)
      take_super_block(block, out);
    else
      take_codes(block, out.codes + i * kBlock);
  }
}

}  // namespace

PackedFormat packed_format(DType dtype) {
  for (const auto& [type, format] : kPackedFormats) {
    if (type == dtype) return format;
  }
  throw UnsupportedError(fmt::format(
      "[PackedWeight] {} is not a block-quantised type; use it as it is", dtype_info(dtype).name));
}

TakeApart take_apart(DType dtype) {
  TakeApart take = nullptr;
  visit_block_type(dtype, [&]<typename Block>(const Block&) { take = take_blocks<Block>; });
  return take;
}

}  // namespace limpid
