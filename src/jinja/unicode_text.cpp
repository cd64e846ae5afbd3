#include "jinja/unicode_text.h"

#include <string.h>  // memmem
#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "jinja/letter_case_tables.h"

namespace limpid::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(utf8proc_category_t c) {
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

enum class Case : uint8_t { kLower, kUpper, kTitle };

// The table has the letters that utf8proc maps otherwise than Python does. A capital sigma always
// becomes σ, also at the end of a word, where Python has ς.
void append_in_case(std::string& out, char32_t c, Case wanted) {
  const auto* end = kLetterCases + kLetterCaseCount;
  const auto* row = std::ranges::lower_bound(kLetterCases, end, c, {}, &LetterCase::letter);
  const auto letter = static_cast<utf8proc_int32_t>(c);
  if (row != end && row->letter == c) {
    out += wanted == Case::kLower ? row->lower : wanted == Case::kUpper ? row->upper : row->title;
  } else {
    const auto mapped = wanted == Case::kLower   ? utf8proc_tolower(letter)
                        : wanted == Case::kUpper ? utf8proc_toupper(letter)
                                                 : utf8proc_totitle(letter);
    unicode::append_utf8(static_cast<char32_t>(mapped), out);
  }
}

// Whether a character belongs to a word for str.title().
bool is_cased(char32_t c) {
  const auto letter = static_cast<utf8proc_int32_t>(c);
  return utf8proc_islower(letter) != 0 || utf8proc_isupper(letter) != 0 ||
         utf8proc_category(letter) == UTF8PROC_CATEGORY_LT;
}

// choose(code point, whether it is the first) returns the case of each letter.
template <typename Choose>
TracedText map_each(TracedView text, Choose choose) {
  TracedText out;
  for_each_code_point(text.bytes(), [&](char32_t c, std::string_view letter) {
    const Case wanted = choose(c, letter.data() == text.bytes().data());
    out.append_with(text.origin(letter), [&](std::string& written) {
      if (c == 0xFFFD) {  // not UTF-8: stays as it is
        written += letter;
      } else {
        append_in_case(written, c, wanted);
      }
    });
  });
  return out;
}

}  // namespace

// Overlong forms, surrogates and cut sequences are not UTF-8: their first byte counts alone.
char32_t next_code_point(std::string_view text, size_t& at) {
  const unicode::CodePoint c = unicode::decode(text.data() + at, text.data() + text.size());
  at += c.size;
  return c.value < unicode::kInvalidByte ? c.value : 0xFFFD;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// str.isprintable(): everything but separators (other than the blank), control characters, and code
// points that are unassigned or private.
bool is_printable(char32_t c) {
  const utf8proc_category_t kind = category(c);
  const bool is_separator = kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_ZP;
  const bool is_other = kind == UTF8PROC_CATEGORY_CN || kind >= UTF8PROC_CATEGORY_CC;
  return c == ' ' || (!is_separator && !is_other);
}

// Names may have letters of all alphabets, as in Python; digits and marks may follow the first
// letter.
bool is_identifier_start(char32_t c) {
  return c == '_' || is_letter(category(c)) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  const auto kind = category(c);
  return is_identifier_start(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_MN ||
         kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_PC;
}

// `characters` is a set, not a suffix: 'xyabc'.lstrip('yx') is 'abc'.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> characters) {
  std::u32string set;
  if (characters) {
    for (size_t at = 0; at < characters->size();) set.push_back(next_code_point(*characters, at));
    std::ranges::sort(set);
  }
  const auto drops = [&](char32_t c) {
    return characters ? std::ranges::binary_search(set, c) : is_space(c);
  };
  size_t begin = 0;
  size_t end = text.size();
  while (side != Side::kRight && begin < end) {
    size_t next = begin;
    if (!drops(next_code_point(text, next))) break;
    begin = next;
  }
  while (side != Side::kLeft && end > begin) {
    const size_t start = end - unicode::decode_last(text.substr(0, end)).size;
    size_t at = start;
    if (!drops(next_code_point(text, at))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

// memmem takes linear time; std::string_view::find may take the product of both lengths.
size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* hit = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return hit ? static_cast<size_t>(static_cast<const char*>(hit) - text.data())
             : std::string_view::npos;
}

// Pieces between separators, empty ones included: 'a,,b' has three.
std::vector<std::string_view> split_text(std::string_view text, std::string_view separator,
                                         int64_t limit) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  while (limit < 0 || static_cast<int64_t>(pieces.size()) < limit) {
    const size_t hit = find_text(text, separator, begin);
    if (hit == std::string_view::npos) break;
    pieces.push_back(text.substr(begin, hit - begin));
    begin = hit + separator.size();
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

// Runs of white space separate the pieces, and are removed at both ends: ' a  b '.split() is ['a',
// 'b'].
std::vector<std::string_view> split_space(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  std::string_view rest = strip(text, Side::kLeft);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<int64_t>(pieces.size()) == limit) {
      pieces.push_back(rest);
      break;
    }
    size_t end = 0;
    for (size_t next = 0; end < rest.size(); end = next) {
      if (is_space(next_code_point(rest, next))) break;
    }
    pieces.push_back(rest.substr(0, end));
    rest = strip(rest.substr(end), Side::kLeft);
  }
  return pieces;
}

// str.splitlines(): besides \n, \r and \r\n it knows vertical tabs, form feeds, and Unicode's
// separators of lines and paragraphs.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const char32_t c = next_code_point(text, at);
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, here - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

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

// 'foo-bar (baz)' becomes 'Foo-Bar (Baz)'.
TracedText to_filter_title(TracedView text) {
  constexpr std::u32string_view kBefore = U"-({[<";
  bool starts_word = true;
  return map_each(text, [&](char32_t c, bool) {
    const bool before = kBefore.find(c) != kBefore.npos || is_space(c);
    return std::exchange(starts_word, before) ? Case::kUpper : Case::kLower;
  });
}

}  // namespace limpid::jinja
