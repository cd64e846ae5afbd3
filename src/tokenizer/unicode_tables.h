// The generated tables behind unicode.h (tools/generate_unicode_tables.py).
#pragma once

#include <cstdint>

namespace limpid::unicode {

// A two-stage table: the properties of code point c are kProperties[kPropertyBlock[c / 128] * 128 +
// c % 128]. Equal blocks of 128 code points are stored once, which makes the table small. The low
// five bits are the general category (Category in unicode.h); 0x20: numeric for Rust's
// `char::is_numeric` (one Unicode version newer than the categories); 0x40: White_Space; 0x80:
// affected by normalization (decomposes, reorders, or composes with preceding characters).
extern const uint16_t kPropertyBlock[];
extern const uint8_t kProperties[];

}  // namespace limpid::unicode
