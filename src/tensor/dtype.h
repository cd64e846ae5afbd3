// Element types of tensors, as files store them.
#pragma once

#include <cstdint>
#include <string_view>

namespace limpid {

// The quantised types are ggml's block formats: `block_size` consecutive elements of a row share
// scales.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
};

struct DTypeInfo {
  std::string_view name;  // "f32", "q4_K", …
  uint32_t block_size;    // elements per block; 1 for plain types
  uint32_t block_bytes;   // bytes per block
};

// A row of the table of all types.
const DTypeInfo& dtype_info(DType dtype);

inline bool is_quantized(DType dtype) { return dtype >= DType::kQ4_0; }

}  // namespace limpid
