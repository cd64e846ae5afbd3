// Finds the end of a run of ASCII bytes of one class, sixteen bytes at a time.
//
// Most text is ASCII, and most of it consists of words. Instead of asking for each byte "is it a
// letter?", a block of 16 bytes gets 16 answers at once as a bit mask. Example for Letters and the
// block "hello, world....": the mask is 1 for bits 0 to 4 and 7 to 11. The number of trailing ones,
// countr_one(mask) = 5, is the length of the run at the start of the block.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace limpid::ascii {

// One bit for each of 16 bytes. The lowest bit is the first byte.
using Mask = uint32_t;

// 16 bytes as two 64-bit words, for processors without SSE2. Every class below is a union of ranges
// low <= byte <= high with low, high < 0x80.
class PlainBlock {
 public:
  explicit PlainBlock(const char* p) { std::memcpy(words_.data(), p, 16); }
  Mask between(uint8_t low, uint8_t high) const {
    return gather(in_range(words_[0], low, high)) | gather(in_range(words_[1], low, high)) << 8;
  }
  // Like in_range for a-z, but A-Z is folded to a-z first.
  Mask letters() const {
    return gather(in_range(words_[0] | kSpaces, 'a', 'z')) |
           gather(in_range(words_[1] | kSpaces, 'a', 'z')) << 8;
  }
  Mask high() const { return gather(words_[0] & kTop) | gather(words_[1] & kTop) << 8; }

 private:
  static constexpr uint64_t kOnes = 0x0101010101010101;
  static constexpr uint64_t kTop = 0x80 * kOnes;
  static constexpr uint64_t kSpaces = 0x20 * kOnes;
  // Sets the top bit of every byte that is in the range. All values are below 0x80, so no addition
  // carries into the next byte.
  static uint64_t in_range(uint64_t word, uint8_t low, uint8_t high) {
    const uint64_t seven = word & ~kTop;
    const uint64_t at_least = seven + (0x80 - low) * kOnes;
    const uint64_t above = seven + (0x7F - high) * kOnes;
    return at_least & ~above & ~word & kTop;
  }
  // Collects the top bits of eight bytes into the low eight bits.
  static Mask gather(uint64_t top) {
    return static_cast<Mask>((top >> 7) * 0x0102040810204080 >> 56);
  }
  std::array<uint64_t, 2> words_;
};

#if defined(__SSE2__)
class Block {
 public:
  explicit Block(const char* p) : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) {}
  Mask between(uint8_t low, uint8_t high) const { return in_range(bytes_, low, high); }
  Mask letters() const { return in_range(_mm_or_si128(bytes_, _mm_set1_epi8(0x20)), 'a', 'z'); }
  Mask high() const { return static_cast<Mask>(_mm_movemask_epi8(bytes_)); }

 private:
  // Shifts the values so that the range begins at the least signed byte; then one comparison is
  // enough.
  static Mask in_range(__m128i bytes, uint8_t low, uint8_t high) {
    const __m128i shifted = _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(0x80 - low)));
    const __m128i limit = _mm_set1_epi8(static_cast<char>(0x80 + (high - low) + 1));
    return static_cast<Mask>(_mm_movemask_epi8(_mm_cmplt_epi8(shifted, limit)));
  }
  __m128i bytes_;
};
#else
using Block = PlainBlock;
#endif

constexpr int kBlock = 16;

inline bool is_letter(char c) { return static_cast<uint8_t>((c | 0x20) - 'a') < 26; }
inline bool is_digit(char c) { return static_cast<uint8_t>(c - '0') < 10; }

struct Letters {  // [A-Za-z]
  static Mask mask(const Block& block) { return block.letters(); }
  static bool holds(char c) { return is_letter(c); }
};
struct Upper {  // [A-Z]
  static Mask mask(const Block& block) { return block.between('A', 'Z'); }
  static bool holds(char c) { return c >= 'A' && c <= 'Z'; }
};
struct Lower {  // [a-z]
  static Mask mask(const Block& block) { return block.between('a', 'z'); }
  static bool holds(char c) { return c >= 'a' && c <= 'z'; }
};
struct Signs {  // ASCII except letters, digits and white space
  static Mask mask(const Block& block) {
    const Mask space = block.between(' ', ' ') | block.between('\t', '\r');
    return ~(space | block.letters() | block.between('0', '9') | block.high()) & 0xFFFF;
  }
  static bool holds(char c) {
    return static_cast<uint8_t>(c) < 0x80 && !is_letter(c) && !is_digit(c) && c != ' ' &&
           (c < '\t' || c > '\r');
  }
};

// Returns the first byte of [p, end) that is not in the class, or `end`.
template <class Class>
const char* run_end(const char* p, const char* end) {
  for (; end - p >= kBlock; p += kBlock) {
    const Mask others = ~Class::mask(Block(p)) & 0xFFFF;
    if (others != 0) return p + std::countr_zero(others);
  }
  while (p < end && Class::holds(*p)) ++p;
  return p;
}

}  // namespace limpid::ascii
