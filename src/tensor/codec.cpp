// Converts rows of any type to f32, and f32 to the float types.
#include "tensor/codec.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/block_codes.h"

namespace limpid {
namespace {

template <typename T, typename Convert>
void decode_plain(const std::byte* source, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, source + i * sizeof(T), sizeof(T));
    out[i] = convert(element);
  }
}

template <typename T, typename Convert>
void encode_plain(std::span<const float> values, std::byte* destination, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = convert(values[i]);
    std::memcpy(destination + i * sizeof(T), &element, sizeof(T));
  }
}

}  // namespace

void check_whole_blocks(DType dtype, size_t n_elements) {
  const DTypeInfo& info = dtype_info(dtype);
  LIMPID_CHECK(ShapeError, n_elements % info.block_size == 0,
               "{} elements are not a whole number of {} blocks of {}", n_elements, info.name,
               info.block_size);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void decode_row(DType dtype, const std::byte* source, std::span<float> out) {
  check_whole_blocks(dtype, out.size());
  switch (dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), source, out.size_bytes());
      return;
    case DType::kF16:
      return decode_plain<uint16_t>(source, out, [](uint16_t x) { return f16_to_f32(x); });
    case DType::kBF16:
      return decode_plain<uint16_t>(source, out, bf16_to_f32);
    case DType::kF64:
      return decode_plain<double>(source, out, [](double x) { return static_cast<float>(x); });
    case DType::kI8:
      return decode_plain<int8_t>(source, out, [](int8_t x) { return static_cast<float>(x); });
    case DType::kU8:
      return decode_plain<uint8_t>(source, out, [](uint8_t x) { return static_cast<float>(x); });
    default:
      LIMPID_CHECK(UnsupportedError, is_quantized(dtype), "{} cannot be decoded to f32",
                   dtype_info(dtype).name);
      return decode_blocks(dtype, source, out);
  }
}

std::vector<float> decode(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_row(tensor.dtype, tensor.data, values);
  return values;
}

void encode_row(DType dtype, std::span<const float> values, std::byte* destination) {
  switch (dtype) {
    case DType::kF32:
      if (!values.empty()) std::memcpy(destination, values.data(), values.size_bytes());
      return;
    case DType::kF16:
      return encode_plain<uint16_t>(values, destination, [](float x) { return f32_to_f16(x); });
    case DType::kBF16:
      return encode_plain<uint16_t>(values, destination, f32_to_bf16);
    default:
      throw UnsupportedError(fmt::format("rows cannot be converted to {}", dtype_info(dtype).name));
  }
}

}  // namespace limpid
