// Converts rows of any type to f32, and f32 to the float types. Half precision is converted with
// integer operations and selects, without branches, so that loops over rows vectorise, and the bits
// are the same on every CPU.
#include "tensor/codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/block_codec.h"

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

// Blocks may lie at any address, so they are copied first, several at once: a load that spans two
// stores waits until both have left the store buffer, which took three fifths of the time when each
// block was copied right before it was decoded.
template <typename Block>
void decode_blocks(const std::byte* source, std::span<float> out) {
  constexpr size_t kTogether = 16;
  const size_t block_size = dtype_info(Block::kDType).block_size;
  const size_t n_blocks = out.size() / block_size;
  Block blocks[kTogether];
  for (size_t begin = 0; begin < n_blocks; begin += kTogether) {
    const size_t n = std::min(kTogether, n_blocks - begin);
    std::memcpy(blocks, source + begin * sizeof(Block), n * sizeof(Block));
    for (size_t i = 0; i < n; ++i) decode_block(blocks[i], out.data() + (begin + i) * block_size);
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

float f16_to_f32(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  // Three cases as selects, not branches, so that loops over rows vectorise.
  const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t infinite_or_nan = (magnitude << 13) | 0x7f800000u;
  const uint32_t finite = magnitude < 0x0400u ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x7c00u ? finite : infinite_or_nan));
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x03ffu);  // NaN, made quiet so that it stays one
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // rounds to 65536 or more
  } else if (magnitude >= 0x38800000u) {
    half = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // One unit in the last place of 0.5 is the smallest half, so the addition rounds to it.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(sign | half);
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
      return decode_plain<uint16_t>(source, out, f16_to_f32);
    case DType::kBF16:
      return decode_plain<uint16_t>(source, out, bf16_to_f32);
    case DType::kF64:
      return decode_plain<double>(source, out, [](double x) { return static_cast<float>(x); });
    case DType::kI8:
      return decode_plain<int8_t>(source, out, [](int8_t x) { return static_cast<float>(x); });
    case DType::kU8:
      return decode_plain<uint8_t>(source, out, [](uint8_t x) { return static_cast<float>(x); });
    default:
      break;
  }
  const auto decode_all = [&]<typename Block>(const Block&) { decode_blocks<Block>(source, out); };
  if (visit_block_type(dtype, decode_all)) return;
  throw UnsupportedError(fmt::format("{} cannot be decoded to f32", dtype_info(dtype).name));
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
      return encode_plain<uint16_t>(values, destination, f32_to_f16);
    case DType::kBF16:
      return encode_plain<uint16_t>(values, destination, f32_to_bf16);
    default:
      throw UnsupportedError(fmt::format("rows cannot be converted to {}", dtype_info(dtype).name));
  }
}

}  // namespace limpid
