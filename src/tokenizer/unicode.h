// UTF-8 and the properties of code points, as far as tokenizers need them.
//
// UTF-8 writes a code point in one to four bytes:
//   U+0000 to U+007F      0xxxxxxx
//   U+0080 to U+07FF      110xxxxx 10xxxxxx
//   U+0800 to U+FFFF      1110xxxx 10xxxxxx 10xxxxxx     without the surrogates D800 to DFFF
//   U+10000 to U+10FFFF   11110xxx 10xxxxxx 10xxxxxx 10xxxxxx
// A byte sequence is valid only if it is the shortest one for its code point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/unicode_tables.h"

namespace limpid::unicode {

// General categories, in the order of the generated table.
enum Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCo,
};

// A set of properties, one bit each, as tested by `\p{..}`, `\s` and "numeric". A code point has
// exactly one category bit, and possibly kSpace and kNumeric.
using Properties = uint32_t;
constexpr Properties bit(Category category) { return Properties{1} << category; }
constexpr Properties kSpace = Properties{1} << 30;    // \s: White_Space
constexpr Properties kNumeric = Properties{1} << 31;  // Rust's char::is_numeric, for "Digits"
constexpr Properties kUpper = bit(kLu) | bit(kLt);
constexpr Properties kLetter = bit(kLu) | bit(kLl) | bit(kLt) | bit(kLm) | bit(kLo);
constexpr Properties kMark = bit(kMn) | bit(kMc) | bit(kMe);
constexpr Properties kNumber = bit(kNd) | bit(kNl) | bit(kNo);
constexpr Properties kPunctuation =
    bit(kPc) | bit(kPd) | bit(kPs) | bit(kPe) | bit(kPi) | bit(kPf) | bit(kPo);
constexpr Properties kSymbol = bit(kSm) | bit(kSc) | bit(kSk) | bit(kSo);

// A byte b that is not part of valid UTF-8 is read as the code point kInvalidByte + b, with
// category Cn and a length of one byte.
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

// Appends `value` as UTF-8, or an invalid byte as itself.
void append_utf8(char32_t value, std::string& out);

// Looks up the two-stage table.
inline Properties properties_of(char32_t value) {
  if (value >= kInvalidByte) return bit(kCn);
  const uint8_t packed = kProperties[kPropertyBlock[value >> 7] * 128U + (value & 127U)];
  return (Properties{1} << (packed & 0x1F)) | (packed & 0x40 ? kSpace : 0) |
         (packed & 0x20 ? kNumeric : 0);
}

// Returns whether `value` is in NFC independently of its neighbours: it does not decompose, reorder
// or compose with preceding characters.
inline bool is_nfc_inert(char32_t value) {
  return value < 0x300 || value >= kInvalidByte ||
         (kProperties[kPropertyBlock[value >> 7] * 128U + (value & 127U)] & 0x80) == 0;
}

extern const Properties kAsciiProperties[128];

// A decoded code point with its properties.
struct Character {
  char32_t value;
  uint32_t size;
  Properties properties;
  bool is(Properties set) const { return (properties & set) != 0; }
};
inline Character character_at(const char* p, const char* end) {
  const auto lead = static_cast<uint8_t>(*p);
  if (lead < 0x80) return {lead, 1, kAsciiProperties[lead]};
  const CodePoint c = decode_multibyte(p, end);
  return {c.value, c.size, properties_of(c.value)};
}

// Returns the length of the complete sequences at the start of `text`: everything except a last
// sequence that more bytes could complete.
size_t complete_prefix(std::string_view text);

// Returns `text` with every maximal ill-formed part replaced by U+FFFD, like Python's
// errors="replace".
std::string replace_invalid(std::string_view text);

// Returns the properties of a general category by its name ("L", "Lu", "Letter"), or nothing for an
// unknown name.
std::optional<Properties> category_named(std::string_view name);

}  // namespace limpid::unicode
