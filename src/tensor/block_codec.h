// One overload of decode_block per block format, and encode_block where Limpid writes the format.
#pragma once

#include "tensor/blocks.h"

namespace limpid {

// Writes the block's elements (32 or 256 of them) to `out`.
void decode_block(const BlockQ4_0& block, float* out);
void decode_block(const BlockQ4_1& block, float* out);
void decode_block(const BlockQ5_0& block, float* out);
void decode_block(const BlockQ5_1& block, float* out);
void decode_block(const BlockQ8_0& block, float* out);
void decode_block(const BlockQ2_K& block, float* out);
void decode_block(const BlockQ3_K& block, float* out);
void decode_block(const BlockQ4_K& block, float* out);
void decode_block(const BlockQ5_K& block, float* out);
void decode_block(const BlockQ6_K& block, float* out);
void decode_block(const BlockIQ4_NL& block, float* out);
void decode_block(const BlockIQ4_XS& block, float* out);

// Quantises 32 elements as ggml's reference quantisers do.
void encode_block(const float* values, BlockQ4_0& block);
void encode_block(const float* values, BlockQ4_1& block);
void encode_block(const float* values, BlockQ5_0& block);
void encode_block(const float* values, BlockQ5_1& block);
void encode_block(const float* values, BlockQ8_0& block);

// 32 levels of at most 4 bits to nibbles: element j < 16 to the low one of byte j, element 16 + j
// to its high one. Of levels of 5 bits, their fifth bits go to qh, element i to bit i.
void pack_nibbles(const uint8_t (&q)[kBlock], uint8_t (&qs)[16]);
void pack_fifth_bits(const uint8_t (&q)[kBlock], uint8_t (&qh)[4]);

}  // namespace limpid
