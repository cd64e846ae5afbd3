// Exact scalar conversion of every DType to f32, and of f32 to the float types. Fast kernels are
// tested against these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/half.h"
#include "tensor/tensor.h"

namespace limpid {

// bfloat16; conversion from f32 rounds to nearest even. half.h has binary16.
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

// Throws ShapeError unless the elements are a whole number of blocks.
void check_whole_blocks(DType dtype, size_t n_elements);

// Decodes out.size() elements that start at `source` (the start of a block) into f32. Bit-equal to
// the `gguf` package's dequantisation. Throws UnsupportedError for integer types other than i8/u8,
// ShapeError as check_whole_blocks does.
void decode_row(DType dtype, const std::byte* source, std::span<float> out);

// The whole tensor as f32, in row-major order.
std::vector<float> decode(const TensorView& tensor);

// Writes `values` as f32, f16 or bf16 to `destination`; throws UnsupportedError for other types.
// quantize_row.h also writes quantised types.
void encode_row(DType dtype, std::span<const float> values, std::byte* destination);

}  // namespace limpid
