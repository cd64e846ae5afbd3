// Element types of tensors, as files store them.
#pragma once

#include <array>
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

// In the order of DType.
inline constexpr std::array<DTypeInfo, 22> kDTypes = {{
    {"f32", 1, 4},      {"f16", 1, 2},        {"bf16", 1, 2},     {"f64", 1, 8},
    {"i8", 1, 1},       {"i16", 1, 2},        {"i32", 1, 4},      {"i64", 1, 8},
    {"u8", 1, 1},       {"bool", 1, 1},       {"q4_0", 32, 18},   {"q4_1", 32, 20},
    {"q5_0", 32, 22},   {"q5_1", 32, 24},     {"q8_0", 32, 34},   {"q2_K", 256, 84},
    {"q3_K", 256, 110}, {"q4_K", 256, 144},   {"q5_K", 256, 176}, {"q6_K", 256, 210},
    {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136},
}};
static_assert(kDTypes.size() == static_cast<size_t>(DType::kIQ4_XS) + 1);

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

// The plain types that the kernels of matrices read as they are in the file.
constexpr bool is_plain_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}
constexpr bool is_float(DType dtype) { return is_plain_float(dtype) || dtype == DType::kF64; }
constexpr bool is_quantized(DType dtype) { return dtype >= DType::kQ4_0; }

}  // namespace limpid
