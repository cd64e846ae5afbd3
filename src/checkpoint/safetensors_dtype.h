// The dtypes of the safetensors format, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

// A dtype of the format, also one that Limpid does not read.
struct SafetensorsDType {
  std::string_view name;       // "BF16"
  uint32_t bits;               // of one element
  std::optional<DType> dtype;  // empty when Limpid does not read it
};

// Returns null when the format has no dtype of that name.
const SafetensorsDType* safetensors_dtype(std::string_view name);
// Returns null when the format cannot hold `dtype` (quantised blocks).
const SafetensorsDType* safetensors_dtype(DType dtype);

}  // namespace limpid
