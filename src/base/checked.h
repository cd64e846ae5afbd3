// Arithmetic on sizes that come from files. Every function returns nullopt when the result does not
// fit. A file that states 2^40 rows of 2^30 columns then causes an error, and not a small
// allocation after an overflow.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace limpid {

// a + b, a * b, if they fit.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The smallest multiple of `alignment` (a power of two) that is >= `value`.
[[nodiscard]] constexpr std::optional<uint64_t> checked_align_up(uint64_t value,
                                                                 uint64_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// `value` as a `To`, if it fits.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr std::optional<To> checked_cast(From value) {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  return std::nullopt;
}

}  // namespace limpid
