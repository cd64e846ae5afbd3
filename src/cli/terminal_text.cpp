// Text is taken apart into characters here, by the decoder of the tokenizer: UTF-8 is checked in
// one place of the project. A byte that does not begin a valid character is a character of its own,
// so that the loop always goes on and nothing is lost.
#include "cli/terminal_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "tokenizer/unicode.h"

namespace limpid::cli {

Character first_character(std::string_view text) noexcept {
  const unicode::CodePoint c = unicode::decode(text.data(), text.data() + text.size());
  const bool is_valid = c.value < unicode::kInvalidByte;
  return {c.size, is_valid ? c.value : c.value - unicode::kInvalidByte, is_valid};
}

// The C1 controls U+0080 to U+009F matter too: some terminals take U+009B for ESC [.
bool is_harmless(const Character& character) noexcept {
  const uint32_t code = character.code;
  const bool is_control =
      (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
  const bool reorders = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return character.is_valid && !is_control && !reorders;
}

// A model or a file that says "\x1b[2J" would clear the screen; here it shows as \u001b[2J.
std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (is_harmless(character) || text.starts_with("\r\n")) {
      out += text.substr(0, character.n_bytes);
    } else {
      out +=
          fmt::format(fmt::runtime(character.is_valid ? "\\u{:04x}" : "\\x{:02x}"), character.code);
    }
    text.remove_prefix(character.n_bytes);
  }
  return out;
}

// JSON has no way to write a byte that is not UTF-8, so these stay out of it.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string bytes(text.substr(0, character.n_bytes));
    const std::string json = character.is_valid ? dump_json(Json(bytes)) : '"' + bytes + '"';
    out += for_terminal(std::string_view(json).substr(1, json.size() - 2));
    text.remove_prefix(character.n_bytes);
  }
  return out + "\"";
}

size_t n_characters(std::string_view text) noexcept {
  size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(first_character(text).n_bytes);
  return n;
}

}  // namespace limpid::cli
