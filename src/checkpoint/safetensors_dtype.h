// The dtypes of safetensors, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

struct SafetensorsDType {
  std::string_view name;  // "BF16"
  uint32_t bits;          // of one element
  std::optional<DType> dtype;
};

// nullptr when the format has none of that name.
const SafetensorsDType* safetensors_dtype(std::string_view name);
// nullptr when the format cannot hold it (quantised blocks).
const SafetensorsDType* safetensors_dtype(DType dtype);

}  // namespace limpid
