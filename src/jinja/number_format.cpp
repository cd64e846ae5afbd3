#include "jinja/number_format.h"

#include <fmt/format.h>

#include <cmath>

namespace limpid::jinja {

std::string float_digits(double value, char type, int precision, bool alternate) {
  value = std::abs(value);
  const bool upper = type >= 'A' && type <= 'Z';
  if (std::isnan(value)) return upper ? "NAN" : "nan";
  if (std::isinf(value)) return upper ? "INF" : "inf";
  std::string spec = "{:";
  if (alternate) spec += '#';
  spec += "." + std::to_string(precision);
  spec += type;
  spec += '}';
  return fmt::format(fmt::runtime(spec), value);
}

std::string integer_digits(uint64_t magnitude, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  size_t whole = 0;
  while (whole < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[whole])) &&
         digits[whole] != 'e') {
    ++whole;
  }
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

}  // namespace limpid::jinja
