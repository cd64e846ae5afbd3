// Scanners for one kind of run each (digits, line breaks, scripts). Pre-tokenizers apply several in
// sequence.
#pragma once

#include "tokenizer/scanner_parts.h"

namespace limpid::pre_tokenizer_scanners {

// Matches \p{N}{1,kMax}, or with kRust one character of Rust's is_numeric (the pre-tokenizer
// "Digits").
template <int kMax, bool kRust = false>
struct Numbers {
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char* end) {
    return skip_at_most < kMax, kRust ? kNumeric : kNumber > (p, end);
  }
};

struct LineBreak {  // [\r\n]
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char*) {
    return *p == '\r' || *p == '\n' ? p + 1 : p;
  }
};

template <Properties kSet>
struct SpacedRun {  // \s?[set]+
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char* end) {
    const Character c = character_at(p, end);
    if (c.is(kSet)) return skip<kSet>(p + c.size, end);
    if (!c.is(kSpace)) return p;
    const char* q = skip<kSet>(p + c.size, end);
    return q == p + c.size ? p : q;
  }
};

// Matches [set]+ for the code points for which `Set::holds` is true.
template <class Set>
struct CodePointRun {
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char* end) {
    while (p < end) {
      const CodePoint c = decode(p, end);
      if (!Set::holds(c.value)) break;
      p += c.size;
    }
    return p;
  }
};

struct Cjk {  // [一-龥぀-ゟ゠-ヿ]
  static bool holds(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
  }
};

struct EastAsian {  // [一-龥ࠀ-一가-퟿]
  static bool holds(char32_t c) {
    return (c >= 0x800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF);
  }
};

// [!-/:-~ without letters][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
// ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
struct DeepSeekWords {
  static constexpr bool kCoversAll = false;
  static constexpr Properties kWord = kLetter | kMark;
  static constexpr Properties kSign = kPunctuation | kSymbol;
  static bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  static const char* match(const char* p, const char* end) {
    const Character c = character_at(p, end);
    const char* const next = p + c.size;
    if (c.value < 0x80 && c.is(kSign) && next < end && is_ascii_letter(*next)) {
      const char* q = next;
      while (q < end && is_ascii_letter(*q)) ++q;
      return q;
    }
    if (c.is(kWord)) return skip<kWord>(next, end);
    Character d{};
    if (next < end) d = character_at(next, end);
    if (c.value != '\r' && c.value != '\n' && !c.is(kSign) && d.is(kWord))
      return skip<kWord>(next + d.size, end);
    if (c.is(kSign)) return signs(next, end);
    if (c.value == ' ' && d.is(kSign)) return signs(next + d.size, end);
    return c.is(kSpace) ? match_space<true>(p, end) : p;
  }
  static const char* signs(const char* p, const char* end) {
    p = skip<kSign>(p, end);
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }
};

struct BloomRun {  //  ?[^(\s|.,!?…。，、।۔،)]+
  static constexpr bool kCoversAll = false;
  static bool stops(const Character& c) {
    switch (c.value) {
      case '(':
      case '|':
      case '.':
      case ',':
      case '!':
      case '?':
      case ')':
      case 0x2026:
      case 0x3002:
      case 0xFF0C:
      case 0x3001:
      case 0x0964:
      case 0x06D4:
      case 0x060C:
        return true;
      default:
        return c.is(kSpace);
    }
  }
  static const char* run(const char* p, const char* end) {
    while (p < end) {
      const Character c = character_at(p, end);
      if (stops(c)) break;
      p += c.size;
    }
    return p;
  }
  static const char* match(const char* p, const char* end) {
    if (*p != ' ') return run(p, end);
    const char* q = run(p + 1, end);
    return q == p + 1 ? p : q;
  }
};

}  // namespace limpid::pre_tokenizer_scanners
