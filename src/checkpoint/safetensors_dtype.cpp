#include "checkpoint/safetensors_dtype.h"

#include <array>

namespace limpid {
namespace {

constexpr std::array kDTypes = {
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

}  // namespace

const SafetensorsDType* safetensors_dtype(std::string_view name) {
  for (const SafetensorsDType& dtype : kDTypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

const SafetensorsDType* safetensors_dtype(DType dtype) {
  for (const SafetensorsDType& known : kDTypes) {
    if (known.dtype == dtype) return &known;
  }
  return nullptr;
}

}  // namespace limpid
