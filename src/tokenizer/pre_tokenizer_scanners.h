// The scanners behind pre_tokenizer.h. A scanner's `match(p, end)` gives the end of its regular
// expression's match that begins at `p`, or `p` if there is none; kCoversAll says that there always
// is one. Leftmost alternative, greedy with backtracking, as Oniguruma runs the expressions in
// `tokenizers`.
#pragma once

#include <type_traits>

#include "tokenizer/ascii_run.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode.h"

namespace limpid::pre_tokenizer_scanners {

using namespace unicode;  // the scanners speak of code points throughout

// The class of the ASCII characters in `set`, if run_end knows it; else void.
template <Properties kSet>
constexpr auto ascii_class() {
  // The categories that ASCII characters have.
  constexpr Properties kAscii =
      kSpace | bit(kLu) | bit(kLl) | bit(kNd) | bit(kZs) | bit(kCc) | kPunctuation | kSymbol;
  if constexpr ((kSet & kAscii) == (bit(kLu) | bit(kLl))) return ascii::Letters{};
  if constexpr ((kSet & kAscii) == bit(kLu)) return ascii::Upper{};
  if constexpr ((kSet & kAscii) == bit(kLl)) return ascii::Lower{};
}

// The first character from p on that is not in the set.
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

// The first white space, word or number character from p on; `kWord` are letters, perhaps more.
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

// 's 't 're 've 'm 'll 'd at `p`, where *p is an apostrophe; `p` if none. Without regard to case,
// `s` is also U+017F LATIN SMALL LETTER LONG S, which folds to it (llama.cpp misses that one,
// Oniguruma does not).
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

// `\s+(?!\S)|\s+`, after `\s*[\r\n]+` if kLines: white space begins at `p`.
template <bool kLines>
const char* match_space(const char* p, const char* end) {
  const char* q = p;
  const char* last = p;        // where the last white space character begins
  const char* after_line = p;  // after the last line break
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

// Whether a word of ASCII letters can have this ASCII character before its second letter: it is a
// letter itself, or [^\r\n\p{L}\p{N}].
inline bool may_precede_letter(char c) {
  return static_cast<uint8_t>(c) < 0x80 && !ascii::is_digit(c) && c != '\r' && c != '\n';
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2 {
  static constexpr bool kCoversAll = true;
  static const char* match(const char* p, const char* end) {
    if (*p == '\'') {
      const char* q = match_contraction<false>(p, end);
      if (q != p) return q;
    }
    const char* q = *p == ' ' && p + 1 < end ? p + 1 : p;
    if (ascii::is_letter(*q)) return skip<kLetter>(q + 1, end);
    const Character c = character_at(q, end);
    if (c.is(kLetter)) return skip<kLetter>(q + c.size, end);
    if (c.is(kNumber)) return skip<kNumber>(q + c.size, end);
    if (!c.is(kSpace)) return skip_signs<kLetter>(q + c.size, end);
    return match_space<false>(p, end);
  }
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,kDigits}|
// ?[^\sW\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ where W is \p{L}, or [\p{L}\p{M}] with kMarks;
// without kJoinLines the fourth is ` ?[^\sW\p{N}\r\n]+`.
template <int kDigits, bool kMarks, bool kJoinLines>
struct Cl100k {
  static constexpr bool kCoversAll = true;
  static constexpr Properties kWord = kMarks ? kLetter | kMark : kLetter;

  static const char* match(const char* p, const char* end) {
    if (*p == '\'') {
      const char* q = match_contraction<true>(p, end);
      if (q != p) return q;
    }
    if (may_precede_letter(*p) && p + 1 < end && ascii::is_letter(p[1]))
      return skip<kWord>(p + 2, end);
    const Character c = character_at(p, end);
    const char* const next = p + c.size;
    if (c.is(kWord)) return skip<kWord>(next, end);
    if (c.is(kNumber)) {
      const char* q = next;
      for (int n = 1; n < kDigits && q < end; ++n) {
        const Character digit = character_at(q, end);
        if (!digit.is(kNumber)) break;
        q += digit.size;
      }
      return q;
    }
    Character d{};
    if (next < end) d = character_at(next, end);
    if (c.value != '\r' && c.value != '\n' && d.is(kWord)) return skip<kWord>(next + d.size, end);
    if (!c.is(kSpace)) return punctuation(next, end);
    if (c.value == ' ' && next < end && !d.is(kSpace | kWord | kNumber))
      return punctuation(next + d.size, end);
    return match_space<true>(p, end);
  }
  static const char* punctuation(const char* p, const char* end) {
    p = skip_signs<kWord>(p, end);
    if (kJoinLines) {
      while (p < end && (*p == '\r' || *p == '\n')) ++p;
    }
    return p;
  }
};

// [^\r\n\p{L}\p{N}]?U*l+C?|[^\r\n\p{L}\p{N}]?U+l*C?|\p{N}{1,kDigits}|
// ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], l =
// [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C the contractions if kContractions.
template <int kDigits, bool kContractions>
struct O200k {
  static constexpr bool kCoversAll = true;
  static constexpr Properties kBoth = bit(kLm) | bit(kLo) | kMark;
  static constexpr Properties kUpperLike = kUpper | kBoth;
  static constexpr Properties kLowerLike = bit(kLl) | kBoth;

  static const char* match(const char* p, const char* end) {
    if (may_precede_letter(*p) && p + 1 < end && ascii::is_letter(p[1])) {
      return with_contraction(find_word(ascii::is_letter(*p) ? p : p + 1, end).stop, end);
    }
    const Character c = character_at(p, end);
    const char* const next = p + c.size;
    if (c.is(kNumber)) {
      const char* q = next;
      for (int n = 1; n < kDigits && q < end; ++n) {
        const Character digit = character_at(q, end);
        if (!digit.is(kNumber)) break;
        q += digit.size;
      }
      return q;
    }
    if (c.is(kLetter)) return with_contraction(find_word(p, end).stop, end);
    if (c.value != '\r' && c.value != '\n' && next < end &&
        character_at(next, end).is(kLetter | kMark)) {
      // c is the optional prefix. A mark is a word of its own too, and that (first alternative)
      // comes before a prefix with nothing but capitals behind it (second alternative).
      const Word word = find_word(next, end);
      if (word.has_lower || !c.is(kMark)) return with_contraction(word.stop, end);
    }
    if (c.is(kMark)) return with_contraction(find_word(p, end).stop, end);
    if (!c.is(kSpace)) return punctuation(next, end);
    if (c.value == ' ' && next < end) {
      const Character d = character_at(next, end);
      if (!d.is(kSpace | kLetter | kNumber)) return punctuation(next + d.size, end);
    }
    return match_space<true>(p, end);
  }

  // `U*l+|U+l*` at a letter or mark. U* takes all it can; if no l follows, it gives back up to the
  // last character that is both (has_lower: the first alternative matched); if there is none, the
  // second alternative takes the whole run.
  struct Word {
    const char* stop;
    bool has_lower;
  };
  static Word find_word(const char* p, const char* end) {
    const char* after_both = nullptr;
    const char* q = p;
    while (q < end) {
      if (static_cast<uint8_t>(*q) < 0x80) {
        q = ascii::run_end<ascii::Upper>(q, end);  // none of them is both
        if (q == end || static_cast<uint8_t>(*q) < 0x80) break;
      }
      const Character c = character_at(q, end);
      if (!c.is(kUpperLike)) break;
      q += c.size;
      if (c.is(kBoth)) after_both = q;
    }
    const char* stop = skip<kLowerLike>(q, end);
    if (stop != q) return {stop, true};
    if (after_both != nullptr) return {after_both, true};
    return {q, false};
  }
  static const char* with_contraction(const char* p, const char* end) {
    return kContractions && p < end && *p == '\'' ? match_contraction<true>(p, end) : p;
  }
  static const char* punctuation(const char* p, const char* end) {
    p = skip_signs<kLetter>(p, end);
    while (p < end && (*p == '\r' || *p == '\n' || *p == '/')) ++p;
    return p;
  }
};

// Cl100k with `\s++$` before `\s*[\r\n]+`, as tiktoken has it: white space that ends the text is
// one piece.
struct OpenAiCl100k {
  static constexpr bool kCoversAll = true;
  static const char* match(const char* p, const char* end) {
    const char* q = p;
    for (; q < end;) {
      const Character c = character_at(q, end);
      if (!c.is(kSpace)) break;
      q += c.size;
    }
    return q == end ? q : Cl100k<3, false, true>::match(p, end);
  }
};

// \p{N}{1,kMax}, or with kRust one character of Rust's is_numeric (the pre-tokenizer "Digits").
template <int kMax, bool kRust = false>
struct Numbers {
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char* end) {
    for (int n = 0; n < kMax && p < end; ++n) {
      const Character c = character_at(p, end);
      if (!c.is(kRust ? kNumeric : kNumber)) break;
      p += c.size;
    }
    return p;
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

struct CjkRun {  // [一-龥぀-ゟ゠-ヿ]+
  static constexpr bool kCoversAll = false;
  static bool holds(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
  }
  static const char* match(const char* p, const char* end) {
    while (p < end) {
      const CodePoint c = decode(p, end);
      if (!holds(c.value)) break;
      p += c.size;
    }
    return p;
  }
};

struct EastAsianRun {  // [一-龥ࠀ-一가-퟿]+
  static constexpr bool kCoversAll = false;
  static bool holds(char32_t c) {
    return (c >= 0x800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF);
  }
  static const char* match(const char* p, const char* end) {
    while (p < end) {
      const CodePoint c = decode(p, end);
      if (!holds(c.value)) break;
      p += c.size;
    }
    return p;
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

// Isolates the matches of `First`, then cuts every piece (matches and what lies between them) with
// `Rest`.
template <class Sink>
void split_each(const char* p, const char* end, Sink&& sink) {
  sink(p, static_cast<size_t>(end - p));
}
template <class First, class... Rest, class Sink>
void split_with(const char* p, const char* end, Sink&& sink) {
  const auto piece = [&](const char* from, const char* to) {
    if constexpr (sizeof...(Rest) == 0) {
      sink(from, static_cast<size_t>(to - from));
    } else {
      split_with<Rest...>(from, to, sink);
    }
  };
  const char* gap = p;  // where the text without a match began
  while (p < end) {
    const char* q = First::match(p, end);
    if constexpr (!First::kCoversAll) {
      if (q == p) {
        p += decode(p, end).size;
        continue;
      }
      if (gap != p) piece(gap, p);
    }
    piece(p, q);
    p = gap = q;
  }
  if (gap != end) piece(gap, end);
}

// Calls sink(const char* begin, size_t size) for every piece of [p, end), in order.
template <class Sink>
void split(PreTokenizer pre_tokenizer, const char* p, const char* end, Sink&& sink) {
  switch (pre_tokenizer) {
    case PreTokenizer::kGpt2:
      return split_with<Gpt2>(p, end, sink);
    case PreTokenizer::kDigitsGpt2:
      return split_with<Numbers<1, true>, Gpt2>(p, end, sink);
    case PreTokenizer::kCl100k:
      return split_with<OpenAiCl100k>(p, end, sink);
    case PreTokenizer::kLlama3:
      return split_with<Cl100k<3, false, true>>(p, end, sink);
    case PreTokenizer::kQwen2:
      return split_with<Cl100k<1, false, true>>(p, end, sink);
    case PreTokenizer::kQwen35:
      return split_with<Cl100k<1, true, true>>(p, end, sink);
    case PreTokenizer::kSeedCoder:
      return split_with<Cl100k<1, false, false>>(p, end, sink);
    case PreTokenizer::kGpt4o:
      return split_with<O200k<3, true>>(p, end, sink);
    case PreTokenizer::kTekken:
      return split_with<O200k<1, false>>(p, end, sink);
    case PreTokenizer::kDeepSeekV3:
      return split_with<Numbers<3>, CjkRun, DeepSeekWords>(p, end, sink);
    case PreTokenizer::kDeepSeekCoder:
      return split_with<LineBreak, SpacedRun<kLetter>, SpacedRun<kPunctuation>, EastAsianRun,
                        Numbers<1, true>>(p, end, sink);
    case PreTokenizer::kBloom:
      return split_with<BloomRun>(p, end, sink);
    case PreTokenizer::kViking:
      return split_with<BloomRun, Numbers<1>>(p, end, sink);
  }
}

}  // namespace limpid::pre_tokenizer_scanners
