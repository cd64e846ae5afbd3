// The numbers of GGUF's metadata types and tensor types, from ggml's specification and ggml.h. The
// two lists are separate: metadata type 6 is f32, tensor type 6 is Q5_0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr uint32_t kGgufMaxDims = 4;
inline constexpr uint64_t kGgufLongestName = 64;  // of a tensor, in bytes

// Types of metadata values.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

struct GgufTypeInfo {
  std::string_view name;  // "u32", "string", …
  uint32_t min_bytes;     // the fewest bytes of a value in the file; exact for numbers
};

// Returns null for a number that GGUF does not define.
const GgufTypeInfo* gguf_type_info(uint32_t type);

constexpr bool is_gguf_number(GgufType type) {
  return type != GgufType::kBool && type != GgufType::kString && type != GgufType::kArray;
}

// Calls `visit` with a zero of the C++ type that a number of this GGUF type has in a file. So one
// template serves all types of numbers: visit_gguf_number(type, []<typename File>(File) { … }).
template <typename Visit>
auto visit_gguf_number(GgufType type, Visit&& visit) {
  switch (type) {
    case GgufType::kU8:
      return visit(uint8_t{});
    case GgufType::kI8:
      return visit(int8_t{});
    case GgufType::kU16:
      return visit(uint16_t{});
    case GgufType::kI16:
      return visit(int16_t{});
    case GgufType::kU32:
      return visit(uint32_t{});
    case GgufType::kI32:
      return visit(int32_t{});
    case GgufType::kU64:
      return visit(uint64_t{});
    case GgufType::kI64:
      return visit(int64_t{});
    case GgufType::kF32:
      return visit(float{});
    default:
      return visit(double{});
  }
}

// A tensor type of ggml, also one that Limpid does not read.
struct GgmlType {
  uint32_t id;
  std::string_view name;
  std::optional<DType> dtype;  // empty when Limpid does not read the type
};

// The types that Limpid reads, separated by commas: "F32, F16, Q4_0, …".
std::string readable_ggml_types();

// Returns null for a number that ggml never defined.
const GgmlType* ggml_type(uint32_t id);

// The number of `dtype` in GGUF files; nullopt for u8 and bool, which GGUF lacks.
std::optional<uint32_t> ggml_type_id(DType dtype);

}  // namespace limpid
