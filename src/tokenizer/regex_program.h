// The regular expressions of pre-tokenizers, compiled for the matcher in regex_splitter.cpp.
//
// Expressions have Oniguruma's syntax and meaning, because `tokenizers` runs them with Oniguruma,
// and the categories of our own tables. Example: ` ?\p{L}+|\s` is
//
//   0 split  5      tries 1 first, and 5 if that fails
//   1 split  3
//   2 class  ' '
//   3 class  \p{L}
//   4 run    \p{L}  as many as possible, then fewer; continues at 5 as its last instruction
//   …
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/unicode.h"

namespace limpid {

// A set of characters: \p{L}, [^\r\n], a single letter.
struct CharacterClass {
  unicode::Properties properties = 0;                   // all characters with one of these,
  std::vector<std::pair<char32_t, char32_t>> ranges{};  // those in a range, both ends included,
  std::vector<CharacterClass> nested{};                 // and those of other classes;
  bool negated = false;                                 // or all others

  bool holds(const unicode::Character& c) const;
};

// One instruction. Jumps are relative, so that code can be moved and repeated.
struct RegexInstruction {
  enum class Op : uint8_t {
    kClass,      // one character of the class `operand`
    kRun,        // as many as possible of them; if the rest then fails, fewer
    kRunAtomic,  // as many as possible of them, never fewer
    kLineStart,  // ^
    kLineEnd,    // $
    kBack,       // goes back by `operand` characters
    kSplit,      // tries the next instruction and, if that fails, the one at +operand
    kSplitLazy,  // the reverse
    kJump,       // to +operand
    // The next instructions up to kAccept are a part that is matched on its own; +operand follows.
    kAhead,     // (?=…), and with kBack (?<=…)
    kNotAhead,  // (?!…), (?<!…)
    kAtomic,    // (?>…)
    kAccept,
  };
  Op op;
  int32_t operand = 0;
};

// A compiled expression.
struct RegexProgram {
  std::vector<RegexInstruction> code;
  std::vector<CharacterClass> classes;
  // The classes that the first character of a match can be of. Empty if a match may be empty.
  std::vector<int32_t> first;
};

// Throws UnsupportedError naming a construct that is not supported: \w \b \h \X \R, back
// references, named groups, conditions, comments, flags (except `(?i:…)` around contractions),
// POSIX brackets, intersections, look-behinds without a fixed length, repetitions of what may be
// empty.
RegexProgram compile_regex(std::string_view pattern);

}  // namespace limpid
