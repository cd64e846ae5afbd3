// The generated tables behind unicode.h (tools/generate_unicode_tables.py).
#pragma once

#include <cstdint>

namespace limpid::unicode {

// A two-stage table: the properties of code point c are properties[blocks[c / 128] * 128 + c %
// 128]. Equal blocks of 128 code points are stored once, which makes the table small. The low five
// bits are the general category (Category in unicode.h); 0x20: numeric for Rust's
// `char::is_numeric` (one Unicode version newer than the categories); 0x40: White_Space; 0x80:
// affected by normalization (decomposes, reorders, or composes with preceding characters).
struct PropertyTables {
  uint16_t blocks[0x110000 / 128];
  uint8_t properties[268 * 128];
};
extern const PropertyTables kTables;
inline uint8_t packed_properties(char32_t c) {
  return kTables.properties[kTables.blocks[c >> 7] * 128U + (c & 127U)];
}

}  // namespace limpid::unicode
