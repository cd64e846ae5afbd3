// One overload of quantize_block per block format: searches for the scales that leave the least
// weighted squared error. encode_block (block_codec.h) is the plain rule that formats are defined
// by; this is what files should be made with.
#pragma once

#include "tensor/blocks.h"

namespace limpid {

// Quantises the block's 32 or 256 values. `importance` has as many numbers >= 0, or is null.
void quantize_block(const float* values, const float* importance, BlockQ4_0& block);
void quantize_block(const float* values, const float* importance, BlockQ4_1& block);
void quantize_block(const float* values, const float* importance, BlockQ5_0& block);
void quantize_block(const float* values, const float* importance, BlockQ5_1& block);
void quantize_block(const float* values, const float* importance, BlockQ8_0& block);
void quantize_block(const float* values, const float* importance, BlockQ2_K& block);
void quantize_block(const float* values, const float* importance, BlockQ3_K& block);
void quantize_block(const float* values, const float* importance, BlockQ4_K& block);
void quantize_block(const float* values, const float* importance, BlockQ5_K& block);
void quantize_block(const float* values, const float* importance, BlockQ6_K& block);
void quantize_block(const float* values, const float* importance, BlockIQ4_NL& block);
void quantize_block(const float* values, const float* importance, BlockIQ4_XS& block);

}  // namespace limpid
