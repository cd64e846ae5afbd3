// UTF-8: code points as bytes and back.
//
// UTF-8 (RFC 3629) writes a code point in one to four bytes:
//   U+0000 to U+007F      0xxxxxxx
//   U+0080 to U+07FF      110xxxxx 10xxxxxx
//   U+0800 to U+FFFF      1110xxxx 10xxxxxx 10xxxxxx     without the surrogates D800 to DFFF
//   U+10000 to U+10FFFF   11110xxx 10xxxxxx 10xxxxxx 10xxxxxx
// A byte sequence is valid only if it is the shortest one for its code point. A byte 10xxxxxx never
// begins a character, so a reader can enter a text anywhere and find the next character.
//
// Texts come from users and files and may hold any bytes. The functions here therefore never fail:
// a byte that is not part of valid UTF-8 counts as a character of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace limpid::unicode {

// A byte b that is not part of valid UTF-8 is read as the code point kInvalidByte + b, with a
// length of one byte. The last code point of Unicode is U+10FFFF, so no other one is as large.
constexpr char32_t kInvalidByte = 0x110000;

// A decoded code point and its length.
struct CodePoint {
  char32_t value;
  uint32_t size;  // in bytes
};

// Returns the code point at `p`, p < end. Never reads beyond `end`. A byte that does not begin the
// shortest form of a scalar value (overlong, surrogate, truncated) is an invalid byte.
CodePoint decode_any(const char* p, const char* end);
// Like decode_any, for *p >= 0x80. Sequences of two and three bytes, by far the most frequent, are
// decoded inline.
inline CodePoint decode_multibyte(const char* p, const char* end) {
  const auto byte = [&](int i) -> char32_t { return static_cast<uint8_t>(p[i]); };
  if (end - p >= 3 && (byte(1) & 0xC0) == 0x80) {
    const char32_t two = (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    if ((byte(0) & 0xE0) == 0xC0 && two >= 0x80) return {two, 2};
    const char32_t three = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    const bool whole = (byte(0) & 0xF0) == 0xE0 && (byte(2) & 0xC0) == 0x80;
    if (whole && three >= 0x800 && (three & 0xF800) != 0xD800) return {three, 3};
  }
  return decode_any(p, end);
}
inline CodePoint decode(const char* p, const char* end) {
  const auto lead = static_cast<uint8_t>(*p);
  if (lead < 0x80) return {lead, 1};
  return decode_multibyte(p, end);
}
// The first code point of a text that is not empty.
inline CodePoint decode(std::string_view text) {
  return decode(text.data(), text.data() + text.size());
}

// The last code point of a text that is not empty. The bytes of an invalid sequence count one by
// one, as in decode.
CodePoint decode_last(std::string_view text);

// Calls visit(std::string_view character) with the bytes of each code point of `text`, in order.
template <typename Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const std::string_view character(p, decode(p, end).size);
    visit(character);
    p += character.size();
  }
}

// Appends `value` as UTF-8, or an invalid byte as itself.
void append_utf8(char32_t value, std::string& out);

// Whether a character begins at this byte of valid UTF-8.
inline bool begins_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }
size_t n_characters(std::string_view text);
// Where character `n` begins, in bytes; text.size() if there are fewer.
size_t character_offset(std::string_view text, int64_t n);

bool is_valid(std::string_view text);
// Returns the first byte from `p` on that is not part of valid UTF-8, or `end`.
const char* valid_end(const char* p, const char* end);

// Returns the length of the complete sequences at the start of `text`: everything except a last
// sequence that more bytes could complete.
size_t complete_prefix(std::string_view text);

// Returns `text` with every maximal ill-formed part replaced by U+FFFD, like Python's
// errors="replace".
std::string replace_invalid(std::string_view text);

}  // namespace limpid::unicode
