// GPT-2's printable spelling of bytes: every byte is one code point (Radford et al. 2019,
// `bytes_to_unicode`).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid::byte_alphabet {

// Printable bytes (0x21–0x7E, 0xA1–0xAC, 0xAE–0xFF) stand for themselves as Latin-1, the other 68
// are U+0100, U+0101, … in ascending order; so a space is U+0120.
char32_t code_point_of(uint8_t byte);

// Turns a spelling back into bytes. False, and `out` unspecified, if it holds a character outside
// the alphabet.
bool to_bytes(std::string_view spelling, std::string& out);

}  // namespace limpid::byte_alphabet
