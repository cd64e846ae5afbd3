// Scanners that cut a whole text into words, numbers, signs and white space: the expressions of
// GPT-2 and of OpenAI's later encodings, with their variants.
//
// A regular-expression engine tries the alternatives one after another and backtracks inside each.
// Here the first one or two characters decide which alternative can match, and each alternative is
// a run of characters of one class, so a scanner reads every character about once. Each scanner has
// its expression in a comment, and tests compare the two on random texts.
#pragma once

#include "tokenizer/scanner_parts.h"

namespace limpid::pre_tokenizer_scanners {

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
    if (c.is(kNumber)) return skip_at_most<kDigits - 1, kNumber>(next, end);
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
    return kJoinLines ? skip_line_ends(p, end) : p;
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
    if (c.is(kNumber)) return skip_at_most<kDigits - 1, kNumber>(next, end);
    if (c.is(kLetter)) return with_contraction(find_word(p, end).stop, end);
    if (c.value != '\r' && c.value != '\n' && next < end &&
        character_at(next, end).is(kLetter | kMark)) {
      // c is the optional prefix. A mark alone is a word too (first alternative). This takes
      // precedence over a prefix that is followed only by capitals (second alternative).
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

  // Matches `U*l+|U+l*` at a letter or mark. U* takes as many characters as possible. If no l
  // follows, U* gives back characters up to the last one that is both U and l (has_lower: the first
  // alternative matched). If there is none, the second alternative takes the whole run.
  struct Word {
    const char* stop;
    bool has_lower;
  };
  // Example: "HTMLParser". U* takes "HTMLP", l+ takes "arser", so the whole is one word. For "HTML"
  // alone no l follows; ASCII capitals are never l, so the second alternative takes the run.
  static Word find_word(const char* p, const char* end) {
    const char* after_both = nullptr;
    const char* q = p;
    while (q < end) {
      if (static_cast<uint8_t>(*q) < 0x80) {
        q = ascii::run_end<ascii::Upper>(q, end);  // ASCII capitals are never both
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

// Cl100k with `\s++$` before `\s*[\r\n]+`, as in tiktoken: white space at the end of the text is
// one piece.
struct OpenAiCl100k {
  static constexpr bool kCoversAll = true;
  static const char* match(const char* p, const char* end) {
    const char* const q = skip<kSpace>(p, end);
    return q == end ? q : Cl100k<3, false, true>::match(p, end);
  }
};

}  // namespace limpid::pre_tokenizer_scanners
