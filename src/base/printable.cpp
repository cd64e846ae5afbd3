#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace limpid {
namespace {

// U+FFFE and U+FFFF are not characters, and XML refuses them.
bool is_unseen(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c < 0x20 || within(0x7F, 0x9F) || within(0x200B, 0x200F) || within(0x2028, 0x202E) ||
         within(0x2066, 0x2069) || within(0xFFFE, 0xFFFF) || c >= unicode::kInvalidByte;
}

std::string_view sign_of(char32_t c) {
  return c == ' ' ? "·" : c == '\n' ? "⏎" : c == '\t' ? "⇥" : c == '\r' ? "␍" : "\xEF\xBF\xBD";
}

}  // namespace

std::string visible(std::string_view text) {
  if (text.empty()) return "∅";
  std::string out;
  unicode::for_each_character(text, [&](std::string_view character) {
    const char32_t c = unicode::decode(character).value;
    out += c == ' ' || is_unseen(c) ? sign_of(c) : character;
  });
  return out;
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string out;
  unicode::for_each_character(text.substr(0, kLongest), [&](std::string_view character) {
    const char32_t c = unicode::decode(character).value;
    if (c < 0x20 || c == 0x7F || c >= unicode::kInvalidByte) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character.front()));
    } else {
      out += character;
    }
  });
  if (text.size() > kLongest) out += "...";
  return out;
}

bool is_clean_utf8(std::string_view text) {
  return text.find('\0') == std::string_view::npos && unicode::is_valid(text);
}

}  // namespace limpid
