// Case mappings of Python's str: Unicode's full mappings, where one letter may become three.
#include <utf8proc.h>

#include <algorithm>

#include "jinja/letter_case_tables.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

enum class Case : uint8_t { kLower, kUpper, kTitle };

// The table has the letters that utf8proc maps otherwise than Python does. A capital sigma always
// becomes σ, also at the end of a word, where Python has ς.
void append_in_case(std::string& out, char32_t c, Case wanted) {
  const auto* end = kLetterCases + kLetterCaseCount;
  const auto* row =
      std::lower_bound(kLetterCases, end, c,
                       [](const LetterCase& known, char32_t key) { return known.letter < key; });
  const auto letter = static_cast<utf8proc_int32_t>(c);
  if (row != end && row->letter == c) {
    out += wanted == Case::kLower ? row->lower : wanted == Case::kUpper ? row->upper : row->title;
  } else {
    append_code_point(out,
                      static_cast<char32_t>(wanted == Case::kLower   ? utf8proc_tolower(letter)
                                            : wanted == Case::kUpper ? utf8proc_toupper(letter)
                                                                     : utf8proc_totitle(letter)));
  }
}

// Whether a character belongs to a word for str.title().
bool is_cased(char32_t c) {
  const auto letter = static_cast<utf8proc_int32_t>(c);
  return utf8proc_islower(letter) != 0 || utf8proc_isupper(letter) != 0 ||
         utf8proc_category(letter) == UTF8PROC_CATEGORY_LT;
}

// choose(code point, whether it is the first) gives the case of each letter.
template <typename Choose>
TracedText map_each(TracedView text, Choose choose) {
  const std::string_view bytes = text.bytes();
  TracedText out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(bytes, at);
    const std::string_view letter = bytes.substr(begin, at - begin);
    out.append_with(text.origin(letter), [&](std::string& written) {
      if (c == 0xFFFD) {  // not UTF-8: stays as it is
        written += letter;
      } else {
        append_in_case(written, c, choose(c, begin == 0));
      }
    });
  }
  return out;
}

}  // namespace

TracedText to_lower(TracedView text) {
  return map_each(text, [](char32_t, bool) { return Case::kLower; });
}

TracedText to_upper(TracedView text) {
  return map_each(text, [](char32_t, bool) { return Case::kUpper; });
}

// The first letter in title case (ǆ becomes ǅ), all others small.
TracedText to_capitalized(TracedView text) {
  return map_each(text, [](char32_t, bool first) { return first ? Case::kTitle : Case::kLower; });
}

// A letter begins a word when what is before it has no case, so they're becomes They'Re, as in
// Python.
TracedText to_title(TracedView text) {
  bool in_word = false;
  return map_each(text, [&](char32_t c, bool) {
    return std::exchange(in_word, is_cased(c)) ? Case::kLower : Case::kTitle;
  });
}

}  // namespace limpid::jinja
