// Codes, scales and minima of each block format. Nothing is rounded before the last step, in which
// codes become floats.
#include "tensor/block_codes.h"

#include <algorithm>

#include "tensor/blocks.h"
#include "tensor/code_form.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

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
constexpr bool kIsSuperBlock = requires(const Block& block, BlockCodes& out) {
  take_super_block(block, out);
};

template <class Block>
void take_blocks(const std::byte* source, int64_t n_cols, BlockCodes& out) {
  constexpr int64_t kBlockCols = kIsSuperBlock<Block> ? kSuperBlock : kBlock;
  // `out` has one such block or two blocks of 32, of which a row may end with the first.
  if (!kIsSuperBlock<Block> && n_cols == kBlock) out = {};
  for (int i = 0; i < n_cols / kBlockCols; ++i) {
    // Every format has alignment 1. A copy would be read before it has left the store buffer.
    const auto& block = *reinterpret_cast<const Block*>(source + i * sizeof(Block));
    out.scale[i] = load_u16(block.d);
    if constexpr (requires { block.m; }) out.minimum[i] = load_u16(block.m);
    if constexpr (requires { block.dmin; }) out.minimum[i] = load_u16(block.dmin);
    if constexpr (kIsSuperBlock<Block>)
      take_super_block(block, out);
    else
      take_codes(block, out.codes + i * kBlock);
  }
}

// The elements of n_cols columns, in the order of operations that ggml has.
template <class Block>
void write_elements(const BlockCodes& block, int64_t n_cols, float* out) {
  constexpr CodeForm kForm = code_form(Block::kDType);
  const float factors[] = {f16_to_f32(block.scale[0]), f16_to_f32(block.scale[1])};
  const float minima[] = {f16_to_f32(block.minimum[0]), f16_to_f32(block.minimum[1])};
  for (int64_t g = 0; g < n_cols / kForm.scale_cols; ++g) {
    float scale = factors[kForm.scales_are_f16 ? g : 0];
    float minimum = minima[kForm.scales_are_f16 ? g : 0];
    if constexpr (!kForm.scales_are_f16) {
      scale *= static_cast<float>(kForm.has_minimum ? block.int_scale[g]
                                                    : static_cast<int8_t>(block.int_scale[g]));
      minimum *= -static_cast<float>(block.int_minimum[g]);
    }
    const uint8_t* codes = block.codes + g * kForm.scale_cols;
    for (int k = 0; k < kForm.scale_cols; ++k) {
      const int level = kForm.has_levels ? kIq4Levels[codes[k] & 0x0f] : codes[k] - kForm.zero;
      const float product = scale * static_cast<float>(level);
      *out++ = kForm.has_minimum ? product + minimum : product;
    }
  }
}

}  // namespace

TakeApart take_apart(DType dtype) {
  TakeApart take = nullptr;
  visit_block_type(dtype, [&]<typename Block>(const Block&) { take = take_blocks<Block>; });
  return take;
}

void decode_blocks(DType dtype, const std::byte* source, std::span<float> out) {
  const DTypeInfo& info = dtype_info(dtype);
  const auto n_all = static_cast<int64_t>(out.size());
  visit_block_type(dtype, [&]<typename Block>(const Block&) {
    constexpr int64_t kCols = kIsSuperBlock<Block> ? kSuperBlock : 2 * kBlock;
    BlockCodes codes{};
    for (int64_t col = 0; col < n_all; col += kCols) {
      const int64_t n_cols = std::min(kCols, n_all - col);
      take_blocks<Block>(source + col / info.block_size * info.block_bytes, n_cols, codes);
      write_elements<Block>(codes, n_cols, out.data() + col);
    }
  });
}

}  // namespace limpid
