// Letters whose case mappings are not one letter each, or not utf8proc's. Made by
// tools/make_letter_case_tables.py.
#pragma once

#include <cstddef>

namespace limpid::jinja {

struct LetterCase {
  char32_t letter;
  const char* lower;  // UTF-8
  const char* upper;
  const char* title;
};

extern const LetterCase kLetterCases[];  // by letter, ascending
extern const size_t kLetterCaseCount;

}  // namespace limpid::jinja
