#include "base/utf8.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstring>

namespace limpid::unicode {
namespace {

// The bytes at `p` that belong to one sequence: `need` is the length according to its lead byte (0
// if it is not a lead byte), `have` is the number of well-formed bytes present (Unicode 16, table
// 3-7).
struct Sequence {
  uint32_t need;
  uint32_t have;
};

Sequence examine(const char* p, const char* end) {
  const auto lead = static_cast<uint8_t>(*p);
  if (lead < 0x80) return {1, 1};
  uint32_t need = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0, 0};
  }
  uint32_t have = 1;
  while (have < need && p + have < end) {
    const auto next = static_cast<uint8_t>(p[have]);
    if (next < low || next > high) break;
    low = 0x80;
    high = 0xBF;
    ++have;
  }
  return {need, have};
}

}  // namespace

CodePoint decode_any(const char* p, const char* end) {
  const Sequence sequence = examine(p, end);
  const auto lead = static_cast<uint8_t>(*p);
  if (sequence.need == 0 || sequence.have < sequence.need) return {kInvalidByte + lead, 1};
  if (sequence.need == 1) return {lead, 1};
  char32_t value = lead & (0x7FU >> sequence.need);
  for (uint32_t i = 1; i < sequence.need; ++i)
    value = value << 6 | (static_cast<uint8_t>(p[i]) & 0x3FU);
  return {value, sequence.need};
}

// Goes back over continuation bytes and reads forward again. Only if that ends where the text ends
// do the bytes make one character.
CodePoint decode_last(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* p = end - 1;
  while (p > text.data() && end - p < 4 && !begins_character(*p)) --p;
  const CodePoint c = decode(p, end);
  return p + c.size == end ? c : decode(end - 1, end);
}

void append_utf8(char32_t value, std::string& out) {
  if (value >= kInvalidByte) return out.push_back(static_cast<char>(value - kInvalidByte));
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  out.append(bytes, bytes + size);
}

size_t n_characters(std::string_view text) {
  if (is_valid(text))
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
  size_t n = 0;
  for_each_character(text, [&](std::string_view) { ++n; });
  return n;
}

// ASCII, the common case, takes eight bytes at a time.
size_t character_offset(std::string_view text, int64_t n) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end && n > 0) {
    uint64_t word = 0;
    if (end - p >= 8 && n >= 8) {
      std::memcpy(&word, p, 8);
      if ((word & 0x8080808080808080U) == 0) {
        p += 8;
        n -= 8;
        continue;
      }
    }
    p += decode(p, end).size;
    --n;
  }
  return static_cast<size_t>(p - text.data());
}

bool is_valid(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

const char* valid_end(const char* p, const char* end) {
  while (p < end) {
    const CodePoint c = decode(p, end);
    if (c.value >= kInvalidByte) break;
    p += c.size;
  }
  return p;
}

// Looks back from the end for a lead byte whose sequence is not complete yet.
size_t complete_prefix(std::string_view text) {
  const char* const end = text.data() + text.size();
  // Only the last three bytes can begin an incomplete sequence.
  for (size_t back = std::min<size_t>(text.size(), 3); back > 0; --back) {
    const char* p = end - back;
    if (!begins_character(*p)) continue;
    const Sequence sequence = examine(p, end);
    if (sequence.have == back && sequence.have < sequence.need) return text.size() - back;
  }
  return text.size();
}

// A maximal ill-formed part is the longest beginning of a well-formed sequence, or a single byte.
// Example: E2 82 41 is one U+FFFD and "A"; FF FF is two U+FFFD.
std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const Sequence sequence = examine(p, end);
    if (sequence.need != 0 && sequence.have == sequence.need) {
      out.append(p, sequence.need);
      p += sequence.need;
    } else {
      out += "\xEF\xBF\xBD";
      p += sequence.have == 0 ? 1 : sequence.have;
    }
  }
  return out;
}

}  // namespace limpid::unicode
