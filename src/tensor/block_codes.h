// The contents of file blocks, taken apart: codes, scales and minima, which code_form.h makes
// numbers of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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

// 64 columns of a type with blocks of 32, or 256 columns of another one. The number in column k is
//   scale(k) * (codes[k] - form.zero) + minimum(k)
// with scale and minimum f16 per 32 columns, or factor * int_scale and -(factor * int_minimum). In
// a type with levels, kIq4Levels[codes[k]] takes the place of the bracket. What the type does not
// have is not set.
struct BlockCodes {
  uint16_t scale[2];      // f16: per block of 32, or [0] the factor of int_scale
  uint16_t minimum[2];    // f16, likewise
  uint8_t int_scale[16];  // bits of u8 or i8
  uint8_t int_minimum[16];
  uint8_t codes[256];
};

// Takes apart n_cols columns, at most those of a BlockCodes, that begin at `source`, the start of a
// block. What n_cols does not reach is zero in scale and code.
using TakeApart = void (*)(const std::byte* source, int64_t n_cols, BlockCodes& out);

// The one for blocks of a quantised `dtype`.
TakeApart take_apart(DType dtype);

// Decodes out.size() elements, whole blocks of a quantised `dtype`.
void decode_blocks(DType dtype, const std::byte* source, std::span<float> out);

}  // namespace limpid
