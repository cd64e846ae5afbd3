// One overload of decode_block per block format.
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

}  // namespace limpid
