// GPT-2's printable spelling of bytes: each byte is written as one code point (Radford et al. 2019,
// `bytes_to_unicode`). Vocabulary files use it, because they are text and cannot contain arbitrary
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid::byte_alphabet {

// The printable bytes (0x21–0x7E, 0xA1–0xAC, 0xAE–0xFF) are written as themselves in Latin-1. The
// other 68 bytes are U+0100, U+0101, … in ascending order. A space is therefore U+0120 (Ġ), and the
// bytes " the" are spelled "Ġthe".
char32_t code_point_of(uint8_t byte);

// Returns the spelling of several bytes.
std::string spelling_of(std::string_view bytes);

// Turns a spelling back into bytes. Returns false, with `out` unspecified, if the spelling contains
// a character outside the alphabet.
bool to_bytes(std::string_view spelling, std::string& out);

}  // namespace limpid::byte_alphabet
