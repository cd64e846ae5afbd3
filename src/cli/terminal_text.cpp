#include "cli/terminal_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"

namespace limpid::cli {

// The C1 controls U+0080 to U+009F matter too: some terminals take U+009B for ESC [.
bool is_harmless(char32_t code) noexcept {
  const bool is_control =
      (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
  const bool reorders = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return code < unicode::kInvalidByte && !is_control && !reorders;
}

// A model or a file that says "\x1b[2J" would clear the screen; here it shows as \u001b[2J.
std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [code, size] = unicode::decode(text);
    if (is_harmless(code) || text.starts_with("\r\n")) {
      out += text.substr(0, size);
    } else if (code < unicode::kInvalidByte) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    } else {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(code - unicode::kInvalidByte));
    }
    text.remove_prefix(size);
  }
  return out;
}

// JSON has no way to write a byte that is not UTF-8, so these stay out of it.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  unicode::for_each_character(text, [&](std::string_view character) {
    const std::string bytes(character);
    const std::string json = unicode::is_valid(bytes) ? dump_json(Json(bytes)) : '"' + bytes + '"';
    out += for_terminal(std::string_view(json).substr(1, json.size() - 2));
  });
  return out + "\"";
}

}  // namespace limpid::cli
