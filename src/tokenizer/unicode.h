// The properties of code points, as far as tokenizers need them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"
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

// Looks up the two-stage table. Bytes that are not UTF-8 (base/utf8.h) have category Cn.
inline Properties properties_of(char32_t value) {
  if (value >= kInvalidByte) return bit(kCn);
  const uint8_t packed = packed_properties(value);
  return (Properties{1} << (packed & 0x1F)) | (packed & 0x40 ? kSpace : 0) |
         (packed & 0x20 ? kNumeric : 0);
}

// Returns whether `value` is in NFC independently of its neighbours: it does not decompose, reorder
// or compose with preceding characters.
inline bool is_nfc_inert(char32_t value) {
  return value < 0x300 || value >= kInvalidByte || (packed_properties(value) & 0x80) == 0;
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

// Returns the properties of a general category by its name ("L", "Lu", "Letter"), or nothing for an
// unknown name.
std::optional<Properties> category_named(std::string_view name);

}  // namespace limpid::unicode
