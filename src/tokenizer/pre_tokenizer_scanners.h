// The scanners that pre_tokenizer.h uses. A scanner's `match(p, end)` returns the end of its
// regular expression's match that begins at `p`, or `p` without a match. kCoversAll means that
// there is always a match. The semantics are those of Oniguruma, which `tokenizers` uses: the
// leftmost alternative wins, and quantifiers are greedy with backtracking.
#pragma once

#include "base/check.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/scanner_parts.h"
#include "tokenizer/word_scanners.h"

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

struct CjkRun {  // [一-龥぀-ゟ゠-ヿ]+
  static constexpr bool kCoversAll = false;
  static const char* match(const char* p, const char* end) {
    while (p < end) {
      const CodePoint c = decode(p, end);
      if (!(c.value >= 0x4E00 && c.value <= 0x9FA5) && !(c.value >= 0x3040 && c.value <= 0x30FF))
        break;
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

  static const char* match(const char* p, const char* end) {
    const Character c = character_at(p, end);
    const char* const next = p + c.size;
    if (c.value < 0x80 && c.is(kSign) && next < end && ascii::is_letter(*next))
      return ascii::run_end<ascii::Letters>(next, end);
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
    return skip_line_ends(skip<kSign>(p, end), end);
  }
};

// Isolates the matches of `First`, then cuts every piece (the matches and the text between them)
// with `Rest`.
template <class First, class... Rest, class Sink>
void split_with(const char* p, const char* end, Sink&& sink) {
  const auto piece = [&](const char* from, const char* to) {
    if constexpr (sizeof...(Rest) == 0) {
      sink(from, static_cast<size_t>(to - from));
    } else {
      split_with<Rest...>(from, to, sink);
    }
  };
  const char* gap = p;  // the start of the text without a match
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

// Calls sink(const char* begin, size_t size) for every piece of [p, end), in order. The
// pre-tokenizer has a scanner.
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
    case PreTokenizer::kNone:
      if (p != end) sink(p, static_cast<size_t>(end - p));
      return;
    default:
      LIMPID_ASSERT(has_scanner(pre_tokenizer));
  }
}

}  // namespace limpid::pre_tokenizer_scanners
