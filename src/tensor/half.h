// IEEE 754 binary16 ("half"). (always_inline: kernels, which are compiled once for each instruction
// set, use these functions, and the linker must not merge their copies.)
#pragma once

#include <cstdint>

namespace limpid {

// Three cases as selects, not branches, so that loops over rows vectorise.
[[gnu::always_inline]] inline float f16_to_f32(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffU;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const auto subnormal = __builtin_bit_cast(uint32_t, static_cast<float>(magnitude) * 0x1p-24F);
  const uint32_t normal = (magnitude << 13) + (112U << 23);
  const uint32_t infinite_or_nan = (magnitude << 13) | 0x7f800000U;
  const uint32_t finite = magnitude < 0x0400U ? subnormal : normal;
  return __builtin_bit_cast(float, sign | (magnitude < 0x7c00U ? finite : infinite_or_nan));
}

// Rounds to nearest even.
[[gnu::always_inline]] inline uint16_t f32_to_f16(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const uint32_t sign = (bits >> 16) & 0x8000U;
  uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x03ffU);  // NaN, made quiet so that it stays one
  } else if (magnitude >= 0x477ff000U) {
    half = 0x7c00U;  // rounds to 65536 or more
  } else if (magnitude >= 0x38800000U) {
    half = (magnitude - (112U << 23) + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // One unit in the last place of 0.5 is the smallest half, so the addition rounds to it.
    half = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5F) - 0x3f000000U;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace limpid
