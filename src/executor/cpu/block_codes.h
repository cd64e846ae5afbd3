// The contents of file blocks, taken apart: codes, scales and minima, before they are interleaved.
//
// A weight is always
//   scale * (code - zero) + minimum
// where the IQ4 types have the level of the code (kLevels) in place of the code. Nothing is
// rounded: the packed weight has exactly the values of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "executor/cpu/quantized_linear.h"
#include "tensor/dtype.h"

namespace limpid {

// Eight codes in a word: a shift and a mask take a field out of all eight at once. The mask drops
// what the shift has moved from one byte into the next.
inline uint64_t load8(const uint8_t* codes) {
  uint64_t word;
  std::memcpy(&word, codes, 8);
  return word;
}
inline void store8(uint64_t word, uint8_t* codes) { std::memcpy(codes, &word, 8); }
constexpr uint64_t each(uint8_t byte) { return byte * uint64_t{0x0101010101010101}; }

// One row's share of a superblock of its PackedFormat (64 or 256 columns). The weight in column k
// is
//   scale(k) * (codes[k] - layout.zero) + minimum(k), or kLevels[codes[k]] for codes[k],
// with scale and minimum f16 per 32 columns, or factor * int_scale and -(factor * int_minimum).
// What the format does not have is not set.
struct BlockCodes {
  uint16_t scale[2];      // f16: per block of 32, or [0] the factor of int_scale
  uint16_t minimum[2];    // f16, likewise
  uint8_t int_scale[16];  // bits of u8 or i8
  uint8_t int_minimum[16];
  uint8_t codes[256];
};

// The layout that weights of a quantised `dtype` are packed into.
PackedFormat packed_format(DType dtype);

// Takes apart n_cols (at most a superblock) columns that begin at `source`, the start of a block.
// What n_cols does not reach is zero in scale and code.
using TakeApart = void (*)(const std::byte* source, int64_t n_cols, BlockCodes& out);

// The one for blocks of a quantised `dtype`.
TakeApart take_apart(DType dtype);

}  // namespace limpid
