#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace limpid {

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (!is_clean_utf8(out)) {  // also when the cut split a character
    std::string escaped;
    for (const char c : out) {
      const auto byte = static_cast<unsigned char>(c);
      escaped += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    out = std::move(escaped);
  }
  if (text.size() > kLongest) out += "...";
  return out;
}

bool is_clean_utf8(std::string_view text) {
  return text.find('\0') == std::string_view::npos && unicode::is_valid(text);
}

}  // namespace limpid
