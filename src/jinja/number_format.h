// Numbers as printf and format specifications want them.
#pragma once

#include <cstdint>
#include <string>

namespace limpid::jinja {

// Digits of |value| for e, E, f, F, g, G; `alternate` keeps the point (and the zeros of g).
std::string float_digits(double value, char type, int precision, bool alternate);
std::string integer_digits(uint64_t magnitude, char type);  // d, x, X, o, b
// Puts `separator` between groups of `size` digits of the whole part.
std::string grouped(const std::string& digits, char separator, size_t size);
inline uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace limpid::jinja
