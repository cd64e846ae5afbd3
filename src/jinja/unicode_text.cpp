#include "jinja/unicode_text.h"

#include <string.h>  // memmem
#include <utf8proc.h>

#include <algorithm>

namespace limpid::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(utf8proc_category_t c) {
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

// How many bytes a character has, by its first byte (RFC 3629); 0 for a byte that begins none.
int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

}  // namespace

// Overlong forms, surrogates and cut sequences are not UTF-8: their first byte counts alone.
char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const int length = sequence_length(byte(at));
  if (length == 1) return byte(at++);
  if (length == 0 || text.size() - at < static_cast<size_t>(length)) return ++at, 0xFFFD;
  char32_t value = byte(at) & (0xFF >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return ++at, 0xFFFD;
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  const char32_t smallest = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    return ++at, 0xFFFD;
  }
  at += static_cast<size_t>(length);
  return value;
}

// Goes back over continuation bytes and reads forward again: only if that ends at `at` do the bytes
// make one character.
size_t previous_code_point(std::string_view text, size_t at) {
  size_t start = at - 1;
  while (start > 0 && at - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
    --start;
  }
  size_t end = start;
  next_code_point(text, end);
  return end == at ? start : at - 1;
}

// Encodes one code point as UTF-8.
void append_code_point(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

void append_hex(std::string& out, char32_t value, int n_digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 4 * (n_digits - 1); shift >= 0; shift -= 4) out += kDigits[value >> shift & 0xF];
}

// Every string counts its characters when it is made, so ASCII, the common case, takes eight bytes
// at a time.
int64_t count_code_points(std::string_view text) {
  int64_t n = 0;
  for (size_t at = 0; at < text.size();) {
    uint64_t word = 0;
    if (text.size() - at >= sizeof(word)) {
      memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {  // eight ASCII letters
        at += sizeof(word);
        n += sizeof(word);
        continue;
      }
    }
    next_code_point(text, at);
    ++n;
  }
  return n;
}

// Walks from the front: an index in the middle of a long text is not free, and slices pay for it.
size_t byte_offset(std::string_view text, int64_t index) {
  size_t at = 0;
  for (int64_t i = 0; i < index && at < text.size(); ++i) next_code_point(text, at);
  return at;
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
    std::sort(set.begin(), set.end());
  }
  const auto drops = [&](char32_t c) {
    return characters ? std::binary_search(set.begin(), set.end(), c) : is_space(c);
  };
  size_t begin = 0;
  size_t end = text.size();
  while (side != Side::kRight && begin < end) {
    size_t next = begin;
    if (!drops(next_code_point(text, next))) break;
    begin = next;
  }
  while (side != Side::kLeft && end > begin) {
    const size_t start = previous_code_point(text, end);
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

// Runs of white space separate, and none is left at either end: ' a  b '.split() is ['a', 'b'].
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

}  // namespace limpid::jinja
