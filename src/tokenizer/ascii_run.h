// How far a run of ASCII bytes of one class reaches, sixteen bytes at a time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace limpid::ascii {

// One bit for each of 16 bytes, the first byte's lowest.
using Mask = uint32_t;

// 16 bytes as two words: what SSE2 has in registers, for every other processor. The classes below
// are all "low <= byte <= high" with low, high < 0x80.
class PlainBlock {
 public:
  explicit PlainBlock(const char* p) { std::memcpy(words_.data(), p, 16); }
  Mask between(uint8_t low, uint8_t high) const {
    return gather(in_range(words_[0], low, high)) | gather(in_range(words_[1], low, high)) << 8;
  }
  // The same with A-Z read as a-z.
  Mask letters() const {
    return gather(in_range(words_[0] | kSpaces, 'a', 'z')) |
           gather(in_range(words_[1] | kSpaces, 'a', 'z')) << 8;
  }
  Mask high() const { return gather(words_[0] & kTop) | gather(words_[1] & kTop) << 8; }

 private:
  static constexpr uint64_t kOnes = 0x0101010101010101;
  static constexpr uint64_t kTop = 0x80 * kOnes;
  static constexpr uint64_t kSpaces = 0x20 * kOnes;
  // The top bit of every byte that is in the range; no carry leaves a byte, as each is below 0x80.
  static uint64_t in_range(uint64_t word, uint8_t low, uint8_t high) {
    const uint64_t seven = word & ~kTop;
    const uint64_t at_least = seven + (0x80 - low) * kOnes;
    const uint64_t above = seven + (0x7F - high) * kOnes;
    return at_least & ~above & ~word & kTop;
  }
  // The top bits of eight bytes, side by side.
  static Mask gather(uint64_t top) {
    if constexpr (std::endian::native == std::endian::big) top = __builtin_bswap64(top);
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
  // Shifted so that the range begins at the least signed byte: one comparison decides.
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
struct Signs {  // ASCII that is no letter, no digit and no white space
  static Mask mask(const Block& block) {
    const Mask space = block.between(' ', ' ') | block.between('\t', '\r');
    return ~(space | block.letters() | block.between('0', '9') | block.high()) & 0xFFFF;
  }
  static bool holds(char c) {
    return static_cast<uint8_t>(c) < 0x80 && !is_letter(c) && !is_digit(c) && c != ' ' &&
           (c < '\t' || c > '\r');
  }
};

// The first byte of [p, end) that the class does not hold.
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
