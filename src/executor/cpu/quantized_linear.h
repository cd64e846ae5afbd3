// Quantised linear layers: the layouts of memory that packing, kernels and executor share.
// docs/numerics.md has the formulas.
//
// Everything here is static or a plain type. Kernels include this header and are compiled once for
// each instruction set, and the linker must not merge their copies of a function (docs/adr/0002).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/code_form.h"

namespace limpid {

// ---- weights ------------------------------------------------------------------------------------

inline constexpr int kGroupRows = 16;   // rows that a packed weight interleaves
inline constexpr int kScaleBlock = 32;  // columns of a block
inline constexpr int kHalfBlock = 16;   // activations that share a scale

// The 16 levels of the IQ4 formats, and 128 more: each code is replaced by its level before it is
// multiplied. In hexadecimal, because some kernels multiply the digits.
static constexpr uint8_t kLevels[16] = {0x01, 0x18, 0x2D, 0x3F, 0x4F, 0x5D, 0x6A, 0x76,
                                        0x81, 0x8D, 0x99, 0xA6, 0xB5, 0xC5, 0xD9, 0xF1};
static constexpr uint8_t kLowDigits[16] = {0x1, 0x8, 0xD, 0xF, 0xF, 0xD, 0xA, 0x6,
                                           0x1, 0xD, 0x9, 0x6, 0x5, 0x5, 0x9, 0x1};
static constexpr uint8_t kHighDigits[16] = {0x0, 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7,
                                            0x8, 0x8, 0x9, 0xA, 0xB, 0xC, 0xD, 0xF};

// Why weights are packed at all: files store a row's blocks one after another, each with its scale
// in front. To multiply such a row, a kernel would load 32 codes, sum the products across a
// register's lanes, and multiply by one scale, row by row. Packed, a lane is a row: one register
// has 4 columns of 16 rows, one instruction (dot4-inl.h) multiplies them by the same 4 activations
// and adds to 16 sums, and one more instruction applies the 16 scales of a block. No sum crosses
// lanes, and the kernel reads one stream from beginning to end.
//
// The layout: a row group is 16 rows. It is stored as superblocks of `cols` columns. Each
// superblock holds, for all 16 rows, the f16 factors, then the integer scales, then the codes. In
// every array the row is the fastest index. Codes are interleaved so that 64 bytes are 16 rows x 4
// consecutive columns (a "K group"):
//   byte 4 r + i of K group g  is the code of row r, column 4 g + i
// A block of 32 columns has 8 K groups. Codes of b bits take b registers, each with 8 / b K groups
// one above the other: of 4-bit codes, register i has K group 2i in its low nibbles and 2i + 1 in
// its high ones; of 2-bit codes, K groups 4i .. 4i + 3 in bits 0-1, 2-3, 4-5, 6-7. Codes of 3, 5
// and 6 bits are split: the registers of their low 2 or 4 bits, then those of their high 1 or 2.
// If the columns end within a superblock, its rest is zero.
//
// Example, Q4_K with 2,048 columns: a superblock of 256 columns has 32 + 32 bytes of f16 factors,
// 128 + 128 bytes of integer scales and minima (8 blocks x 16 rows), and 8 x 256 bytes of codes:
// 2,368 bytes, of which a row group has 8. The file has 16 x 144 = 2,304 bytes for them: scales of
// 6 bits become bytes.
struct PackedLayout : CodeForm {
  int cols = 0;                // columns of a superblock: 64 or 256
  int n_blocks = 0;            // cols / 32
  int scale_offset = 0;        // f16 [n][16]: the scales, or the one factor of the integer scales
  int minimum_offset = 0;      // f16, likewise
  int int_scale_offset = 0;    // u8 or i8 [n][16]
  int int_minimum_offset = 0;  // u8 [n][16]
  int codes_offset = 0;
  int code_block_bytes = 0;  // of a block's codes
  int n_bytes = 0;           // of a superblock; a multiple of 64
};

// Of a quantised type.
static constexpr PackedLayout packed_layout(DType dtype) {
  PackedLayout l{code_form(dtype)};
  l.cols = l.scales_are_f16 ? 64 : 256;
  l.n_blocks = l.cols / kScaleBlock;
  l.code_block_bytes = 64 * (l.low_bits + l.high_bits);
  const int n_scales = l.cols / l.scale_cols;
  const int f16_bytes = (l.scales_are_f16 ? n_scales : 1) * kGroupRows * 2;
  const int int_bytes = l.scales_are_f16 ? 0 : n_scales * kGroupRows;
  const int n_each = l.has_minimum ? 2 : 1;
  l.minimum_offset = f16_bytes;
  l.int_scale_offset = (n_each * f16_bytes + 63) / 64 * 64;
  l.int_minimum_offset = l.int_scale_offset + int_bytes;
  l.codes_offset = l.int_scale_offset + n_each * int_bytes;
  l.n_bytes = l.codes_offset + l.n_blocks * l.code_block_bytes;
  return l;
}

// Bytes of one row group of `cols` columns.
static constexpr int64_t packed_group_bytes(const PackedLayout& layout, int64_t cols) {
  return (cols + layout.cols - 1) / layout.cols * layout.n_bytes;
}

// ---- activations --------------------------------------------------------------------------------

// Tokens are quantised into tiles of 16, 8, 4, 2 or 1 slots, so that a kernel reads one stream. A
// tile may have more slots than tokens that remain: 3 tokens take 4 slots, 7 take 8, 13 take 16,
// and the other slots are zero.
static constexpr int64_t token_tile(int64_t n_left) {
  if (n_left >= 13) return 16;
  if (n_left >= 7) return 8;
  if (n_left >= 3) return 4;
  return n_left;
}

// Slots of all tiles of n_tokens.
static constexpr int64_t token_slots(int64_t n_tokens) {
  int64_t slots = n_tokens / 16 * 16;
  for (int64_t left = n_tokens % 16; left > 0;) {
    const int64_t tile = token_tile(left);
    slots += tile;
    left -= tile;
  }
  return slots;
}

// For each tile of T slots and each block of 32 columns, one record; tile after tile, block after
// block. "Half" h is columns 16 h .. 16 h + 15 of the block, q its integers, s its scale:
//   i8 q[T][32] · f32 s[h][T] · f32 s * sum(q)[h][T] · f32 (sum of that over both halves)[T]
//   · i32 -8 sum(q)[h][T] · i32 -32 sum(q)[h][T] · i32 -128 sum(q)[h][T]
// A format reads the codes, the scales, and what its zero or its minimum asks for.
inline constexpr int64_t kActivationRecord = kScaleBlock + 4 * 11;  // bytes per slot and block

// Bytes that n_tokens rows of `cols` activations (a multiple of 32) take, quantised.
static constexpr int64_t quantized_activations_bytes(int64_t n_tokens, int64_t cols) {
  return token_slots(n_tokens) * (cols / kScaleBlock) * kActivationRecord;
}

// ---- the product --------------------------------------------------------------------------------

// Arguments of `linear`: y[t, r] = sum_k w[r, k] * x[t, k] (+ bias[r]) for the rows of groups
// [group_begin, group_end). `weight` is PackedWeight::data(), `x` what quantize_activations wrote;
// y [n_tokens, rows] f32 with rows y_stride floats apart; bias f32 [rows] or null.
struct LinearTask {
  DType dtype = DType::kQ8_0;  // of `weight`
  const std::byte* weight = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* x = nullptr;
  int64_t n_tokens = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* bias = nullptr;
  int64_t group_begin = 0;
  int64_t group_end = 0;
  bool prefetch = true;  // weights, by software; no bit depends on it
};

}  // namespace limpid
