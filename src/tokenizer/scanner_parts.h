// The parts that scanners are composed of: runs of characters of a set, contractions, white space.
// Each function returns the end of its match from `p` on, at most `end`.
#pragma once

#include <bit>
#include <type_traits>

#include "tokenizer/ascii_run.h"
#include "tokenizer/unicode.h"

namespace limpid::pre_tokenizer_scanners {

using namespace unicode;  // all scanners work with code points

// The class for ascii::run_end with the ASCII characters of `set`, or void if there is none.
template <Properties kSet>
constexpr auto ascii_class() {
  // The categories of ASCII characters.
  constexpr Properties kAscii =
      kSpace | bit(kLu) | bit(kLl) | bit(kNd) | bit(kZs) | bit(kCc) | kPunctuation | kSymbol;
  if constexpr ((kSet & kAscii) == (bit(kLu) | bit(kLl))) return ascii::Letters{};
  if constexpr ((kSet & kAscii) == bit(kLu)) return ascii::Upper{};
  if constexpr ((kSet & kAscii) == bit(kLl)) return ascii::Lower{};
}

// Returns the first character from p on that is not in the set.
template <Properties kSet>
const char* skip(const char* p, const char* end) {
  using Class = decltype(ascii_class<kSet>());
  while (p < end) {
    if constexpr (!std::is_void_v<Class>) {
      if (static_cast<uint8_t>(*p) < 0x80) {
        p = ascii::run_end<Class>(p, end);
        if (p == end || static_cast<uint8_t>(*p) < 0x80) break;
      }
    }
    const Character c = character_at(p, end);
    if (!c.is(kSet)) break;
    p += c.size;
  }
  return p;
}

// Returns the end of the characters from p on that are in the set, at most kMost of them.
template <int kMost, Properties kSet>
const char* skip_at_most(const char* p, const char* end) {
  for (int n = 0; n < kMost && p < end; ++n) {
    const Character c = character_at(p, end);
    if (!c.is(kSet)) break;
    p += c.size;
  }
  return p;
}

inline const char* skip_line_ends(const char* p, const char* end) {
  while (p < end && (*p == '\r' || *p == '\n')) ++p;
  return p;
}

// Returns the first white space, word or number character from p on. `kWord` contains the letters
// and perhaps more.
template <Properties kWord>
const char* skip_signs(const char* p, const char* end) {
  while (p < end) {
    if (static_cast<uint8_t>(*p) < 0x80) {
      p = ascii::run_end<ascii::Signs>(p, end);
      if (p == end || static_cast<uint8_t>(*p) < 0x80) break;
    }
    const Character c = character_at(p, end);
    if (c.is(kSpace | kWord | kNumber)) break;
    p += c.size;
  }
  return p;
}

// Matches 's 't 're 've 'm 'll 'd at `p`, where *p is an apostrophe. Returns `p` if there is no
// match. If case is ignored, U+017F LATIN SMALL LETTER LONG S also matches `s`, because it folds to
// s (in Oniguruma; llama.cpp does not do this).
template <bool kIgnoreCase>
const char* match_contraction(const char* p, const char* end) {
  const auto lower = [&](const char* q) -> char {
    if (q >= end) return 0;
    if (kIgnoreCase && *q >= 'A' && *q <= 'Z') return static_cast<char>(*q | 0x20);
    return *q;
  };
  const char first = lower(p + 1);
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return lower(p + 2) == 'e' ? p + 3 : p;
    case 'l':
      return lower(p + 2) == 'l' ? p + 3 : p;
    case '\xC5':
      return kIgnoreCase && end - p >= 3 && p[2] == '\xBF' ? p + 3 : p;
    default:
      return p;
  }
}

// `\s+(?!\S)|\s+`, after `\s*[\r\n]+` if kLines: white space begins at `p`. Example: for "a  \n b"
// at the first space, with kLines: `\s*[\r\n]+` takes "  \n", and the last space stays for " b".
// For "a   b": `\s+(?!\S)` takes two of the three spaces. For "a b": the only space matches `\s+`,
// unless an earlier alternative has joined it with b.
template <bool kLines>
const char* match_space(const char* p, const char* end) {
  const char* q = p;
  const char* last = p;        // start of the last white space character
  const char* after_line = p;  // position after the last line break
  while (q < end) {
    if (end - q >= ascii::kBlock) {
      const ascii::Block block(q);
      const ascii::Mask spaces = block.between(' ', ' ') | block.between('\t', '\r');
      const int n = std::countr_one(spaces);
      if (n > 0) {
        const ascii::Mask lines =
            (block.between('\n', '\n') | block.between('\r', '\r')) & ((ascii::Mask{1} << n) - 1);
        if (lines != 0) after_line = q + std::bit_width(lines);
        last = q + n - 1;
        q += n;
        if (n < ascii::kBlock && static_cast<uint8_t>(*q) < 0x80) break;
        continue;
      }
    }
    const Character c = character_at(q, end);
    if (!c.is(kSpace)) break;
    last = q;
    q += c.size;
    if (c.value == '\n' || c.value == '\r') after_line = q;
  }
  if (kLines && after_line != p) return after_line;
  if (q == end || last == p) return q;
  return last;
}

// Returns whether this ASCII character can precede a word of ASCII letters: it is a letter, or it
// matches [^\r\n\p{L}\p{N}].
inline bool may_precede_letter(char c) {
  return static_cast<uint8_t>(c) < 0x80 && !ascii::is_digit(c) && c != '\r' && c != '\n';
}

}  // namespace limpid::pre_tokenizer_scanners
