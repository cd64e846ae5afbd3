#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace limpid {

std::string base64(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8U | (j < n ? std::to_integer<uint32_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j)
      text += j <= n ? kBase64Digits[group >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

}  // namespace limpid
