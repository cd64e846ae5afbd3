// The words in the header of a safetensors file: the dtypes, and the key of the metadata.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

// The key of the header's entry that is not a tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// A dtype of the format, also one that Limpid does not read.
struct SafetensorsDType {
  std::string_view name;       // "BF16"
  uint32_t bits;               // of one element
  std::optional<DType> dtype;  // empty when Limpid does not read it
};

inline constexpr std::array kSafetensorsDTypes = {
    SafetensorsDType{"F32", 32, DType::kF32},
    SafetensorsDType{"F16", 16, DType::kF16},
    SafetensorsDType{"BF16", 16, DType::kBF16},
    SafetensorsDType{"F64", 64, DType::kF64},
    SafetensorsDType{"I64", 64, DType::kI64},
    SafetensorsDType{"I32", 32, DType::kI32},
    SafetensorsDType{"I16", 16, DType::kI16},
    SafetensorsDType{"I8", 8, DType::kI8},
    SafetensorsDType{"U8", 8, DType::kU8},
    SafetensorsDType{"BOOL", 8, DType::kBool},
    SafetensorsDType{"U16", 16, std::nullopt},
    SafetensorsDType{"U32", 32, std::nullopt},
    SafetensorsDType{"U64", 64, std::nullopt},
    SafetensorsDType{"C64", 64, std::nullopt},
    SafetensorsDType{"F8_E4M3", 8, std::nullopt},
    SafetensorsDType{"F8_E5M2", 8, std::nullopt},
    SafetensorsDType{"F8_E8M0", 8, std::nullopt},
    SafetensorsDType{"F8_E4M3FNUZ", 8, std::nullopt},
    SafetensorsDType{"F8_E5M2FNUZ", 8, std::nullopt},
    SafetensorsDType{"F6_E2M3", 6, std::nullopt},
    SafetensorsDType{"F6_E3M2", 6, std::nullopt},
    SafetensorsDType{"F4", 4, std::nullopt},
};

// Returns null when the format has no dtype of that name.
inline const SafetensorsDType* safetensors_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kSafetensorsDTypes, name, &SafetensorsDType::name);
  return found == kSafetensorsDTypes.end() ? nullptr : found;
}
// Returns null when the format cannot hold `dtype` (quantised blocks).
inline const SafetensorsDType* safetensors_dtype(DType dtype) {
  const auto* found =
      std::ranges::find(kSafetensorsDTypes, std::optional(dtype), &SafetensorsDType::dtype);
  return found == kSafetensorsDTypes.end() ? nullptr : found;
}

}  // namespace limpid
