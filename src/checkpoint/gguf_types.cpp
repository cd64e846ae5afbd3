#include "checkpoint/gguf_types.h"

#include <algorithm>
#include <array>

namespace limpid {
namespace {

constexpr std::array<GgufTypeInfo, 13> kTypes = {{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 8},
    {"array", 12},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

// The numbers of ggml.h. Early versions wrote the "removed" ones, or they held repacked weights.
constexpr GgmlType kTensorTypes[] = {
    {0, "F32", DType::kF32},
    {1, "F16", DType::kF16},
    {2, "Q4_0", DType::kQ4_0},
    {3, "Q4_1", DType::kQ4_1},
    {4, "Q4_2 (removed from ggml)", {}},
    {5, "Q4_3 (removed from ggml)", {}},
    {6, "Q5_0", DType::kQ5_0},
    {7, "Q5_1", DType::kQ5_1},
    {8, "Q8_0", DType::kQ8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", DType::kQ2_K},
    {11, "Q3_K", DType::kQ3_K},
    {12, "Q4_K", DType::kQ4_K},
    {13, "Q5_K", DType::kQ5_K},
    {14, "Q6_K", DType::kQ6_K},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", DType::kIQ4_NL},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", DType::kIQ4_XS},
    {24, "I8", DType::kI8},
    {25, "I16", DType::kI16},
    {26, "I32", DType::kI32},
    {27, "I64", DType::kI64},
    {28, "F64", DType::kF64},
    {29, "IQ1_M", {}},
    {30, "BF16", DType::kBF16},
    {31, "Q4_0_4_4 (removed from ggml)", {}},
    {32, "Q4_0_4_8 (removed from ggml)", {}},
    {33, "Q4_0_8_8 (removed from ggml)", {}},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {36, "IQ4_NL_4_4 (removed from ggml)", {}},
    {37, "IQ4_NL_4_8 (removed from ggml)", {}},
    {38, "IQ4_NL_8_8 (removed from ggml)", {}},
    {39, "MXFP4", {}},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
};

}  // namespace

const GgufTypeInfo* gguf_type_info(uint32_t type) {
  return type < kTypes.size() ? &kTypes[type] : nullptr;
}

// In the order of ggml's numbers.
std::string readable_ggml_types() {
  std::string names;
  for (const GgmlType& type : kTensorTypes) {
    if (!type.dtype) continue;
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

const GgmlType* ggml_type(uint32_t id) {
  const auto* found = std::ranges::find(kTensorTypes, id, &GgmlType::id);
  return found == std::end(kTensorTypes) ? nullptr : found;
}

std::optional<uint32_t> ggml_type_id(DType dtype) {
  const auto* found = std::ranges::find(kTensorTypes, std::optional(dtype), &GgmlType::dtype);
  if (found == std::end(kTensorTypes)) return std::nullopt;
  return found->id;
}

}  // namespace limpid
