#include "jinja/string_literal.h"

#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Reads `n` hexadecimal digits at `at`.
char32_t hex_escape(std::string_view body, size_t& at, int n) {
  char32_t value = 0;
  for (int i = 0; i < n; ++i, ++at) {
    const int digit = at < body.size() ? hex_digit(body[at]) : -1;
    if (digit < 0) throw StringLiteralFault{"a string has a truncated hexadecimal escape"};
    value = value << 4 | static_cast<char32_t>(digit);
  }
  if (value > 0x10FFFF) throw StringLiteralFault{"a string has an illegal Unicode character"};
  if (value >= 0xD800 && value < 0xE000) {
    throw StringLiteralFault{"a string has a surrogate escape; write the character itself"};
  }
  return value;
}

char32_t octal_escape(std::string_view body, size_t& at) {
  char32_t value = 0;
  for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i, ++at) {
    value = value * 8 + static_cast<char32_t>(body[at] - '0');
  }
  return value;
}

// What stands for a character that a backslash made into text: \xhh, \uhhhh or \Uhhhhhhhh without
// its backslash.
void append_escaped_name(std::string& out, char32_t c) {
  constexpr char kDigits[] = "0123456789abcdef";
  const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += c < 0x100 ? 'x' : c < 0x10000 ? 'u' : 'U';
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[c >> shift & 0xF];
}

}  // namespace

std::string decode_string_literal(std::string_view body) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out += body[at++];
      continue;
    }
    if (++at >= body.size()) throw StringLiteralFault{"a string ends in a backslash"};
    const char c = body[at];
    if (c >= '0' && c <= '7') {
      append_code_point(out, octal_escape(body, at));
      continue;
    }
    constexpr std::string_view kPlain = "\\'\"abfnrtv";
    constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    const size_t plain = kPlain.find(c);
    if (plain != std::string_view::npos) {
      out += kMeaning[plain];
      ++at;
    } else if (c == '\n') {
      ++at;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_code_point(out, hex_escape(body, ++at, c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else if (c == 'N') {
      throw StringLiteralFault{"a string has a \\N{…} escape, which is not supported"};
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      // Jinja first turns é into \xe9; a backslash before it then escapes that backslash.
      out += '\\';
      append_escaped_name(out, next_code_point(body, at));
    } else {
      out += '\\';  // an unknown escape stays
    }
  }
  return out;
}

}  // namespace limpid::jinja
