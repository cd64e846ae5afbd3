#include "tokenizer/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace limpid::byte_alphabet {
namespace {

constexpr bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// Both directions as tables: byte -> code point, and code point -> byte (-1: not in the alphabet).
// The largest code point is U+0143, because 68 bytes are mapped to U+0100 and above.
struct Alphabet {
  std::array<char32_t, 256> code_points{};
  std::array<int16_t, 0x144> bytes{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.code_points[static_cast<size_t>(byte)] = c;
    alphabet.bytes[c] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

char32_t code_point_of(uint8_t byte) { return kAlphabet.code_points[byte]; }

std::string spelling_of(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes)
    unicode::append_utf8(code_point_of(static_cast<uint8_t>(byte)), spelling);
  return spelling;
}

bool to_bytes(std::string_view spelling, std::string& out) {
  out.clear();
  const char* p = spelling.data();
  const char* const end = p + spelling.size();
  while (p < end) {
    const unicode::CodePoint c = unicode::decode(p, end);
    p += c.size;
    if (c.value >= kAlphabet.bytes.size() || kAlphabet.bytes[c.value] < 0) return false;
    out.push_back(static_cast<char>(kAlphabet.bytes[c.value]));
  }
  return true;
}

}  // namespace limpid::byte_alphabet
