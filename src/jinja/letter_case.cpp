// Case mappings of Python's str: Unicode's full mappings, where one letter may become three.
#include <utf8proc.h>

#include <algorithm>

#include "jinja/letter_case_tables.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

const LetterCase* special_case(char32_t c) {
  const auto* end = kLetterCases + kLetterCaseCount;
  const auto* found = std::lower_bound(
      kLetterCases, end, c, [](const LetterCase& row, char32_t key) { return row.letter < key; });
  return found != end && found->letter == c ? found : nullptr;
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const auto* row = special_case(c)) {
    out += row->upper;
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (c < 0x80) {
    append_upper(out, c);
  } else if (const auto* row = special_case(c)) {
    out += row->title;
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(c))));
  }
}

bool is_case_ignorable(char32_t c) {
  switch (c) {
    case '\'':
    case '.':
    case ':':
    case '^':
    case '`':
    case 0xA8:
    case 0xAD:
    case 0xAF:
    case 0xB4:
    case 0xB7:
    case 0xB8:
    case 0x387:
    case 0x55F:
    case 0x5F4:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
    case 0xFE13:
    case 0xFE52:
    case 0xFE55:
    case 0xFF07:
    case 0xFF0E:
    case 0xFF1A:
      return true;
    default:
      break;
  }
  switch (utf8proc_category(static_cast<int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

// Capital sigma at the end of a word, as SpecialCasing.txt defines Final_Sigma.
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  bool cased_before = false;
  for (size_t at = begin; at > 0;) {
    at = previous_code_point(text, at);
    size_t next = at;
    const char32_t c = next_code_point(text, next);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (size_t at = end; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, char32_t c, size_t begin, size_t end) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x3A3) {
    append_code_point(out, is_final_sigma(text, begin, end) ? 0x3C2 : 0x3C3);
  } else if (const auto* row = special_case(c)) {
    out += row->lower;
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c))));
  }
}

template <typename Append>
TracedText map_each(TracedView text, Append append) {
  const std::string_view bytes = text.bytes();
  TracedText out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(bytes, at);
    const std::string_view letter = bytes.substr(begin, at - begin);
    out.append_with(text.origin(letter), [&](std::string& written) {
      if (c == 0xFFFD) {
        written += letter;
      } else {
        append(written, c, begin, at);
      }
    });
  }
  return out;
}

}  // namespace

bool is_lowercase(char32_t c) { return utf8proc_islower(static_cast<int32_t>(c)) != 0; }
bool is_uppercase(char32_t c) { return utf8proc_isupper(static_cast<int32_t>(c)) != 0; }
bool is_cased(char32_t c) {
  return is_lowercase(c) || is_uppercase(c) ||
         utf8proc_category(static_cast<int32_t>(c)) == UTF8PROC_CATEGORY_LT;
}

TracedText to_lower(TracedView text) {
  return map_each(text, [&](std::string& out, char32_t c, size_t begin, size_t end) {
    append_lower(out, text.bytes(), c, begin, end);
  });
}

TracedText to_upper(TracedView text) {
  return map_each(text, [](std::string& out, char32_t c, size_t, size_t) { append_upper(out, c); });
}

TracedText to_title(TracedView text) {
  bool in_word = false;
  return map_each(text, [&](std::string& out, char32_t c, size_t begin, size_t end) {
    if (in_word) {
      append_lower(out, text.bytes(), c, begin, end);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  });
}

TracedText to_capitalized(TracedView text) {
  return map_each(text, [&](std::string& out, char32_t c, size_t begin, size_t end) {
    if (begin == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text.bytes(), c, begin, end);
    }
  });
}

TracedText to_swapped_case(TracedView text) {
  return map_each(text, [&](std::string& out, char32_t c, size_t begin, size_t end) {
    if (is_uppercase(c)) {
      append_lower(out, text.bytes(), c, begin, end);
    } else if (is_lowercase(c)) {
      append_upper(out, c);
    } else {
      append_code_point(out, c);
    }
  });
}

}  // namespace limpid::jinja
