#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode.h"

namespace limpid::unicode {
namespace {

// Characters that the reference tokenizer's normalizer does not move are starters here, although
// the newer tables of utf8proc may know them as marks.
int combining_class(int32_t c) {
  return is_nfc_inert(static_cast<char32_t>(c)) ? 0 : utf8proc_get_property(c)->combining_class;
}

// Appends the full canonical decomposition of `c` (UAX #15), which has at most four characters.
void decompose_to(char32_t c, std::vector<int32_t>& out) {
  const auto point = static_cast<int32_t>(c);
  if (c >= 0x300 && is_nfc_inert(c)) return out.push_back(point);
  std::array<int32_t, 4> parts;
  const auto count =
      utf8proc_decompose_char(point, parts.data(), parts.size(), UTF8PROC_DECOMPOSE, nullptr);
  out.insert(out.end(), parts.begin(), parts.begin() + count);
}

// A stable insertion sort: std::stable_sort allocates, and there are rarely more than two marks.
void sort_by_class(std::vector<int32_t>::iterator first, std::vector<int32_t>::iterator last) {
  const auto before = [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); };
  if (last - first > 16) return std::stable_sort(first, last, before);
  for (auto it = first; it != last; ++it)
    std::rotate(std::upper_bound(first, it, *it, before), it, it + 1);
}

// Canonical ordering: sorts the characters between two starters by combining class, stably.
void reorder(std::vector<int32_t>& points) {
  for (size_t i = 0; i < points.size();) {
    if (combining_class(points[i]) == 0) {
      ++i;
      continue;
    }
    size_t j = i;
    while (j < points.size() && combining_class(points[j]) != 0) ++j;
    sort_by_class(points.begin() + static_cast<std::ptrdiff_t>(i),
                  points.begin() + static_cast<std::ptrdiff_t>(j));
    i = j;
  }
}

// Canonical composition in place (UAX #15): a character composes with the last starter, unless a
// character of the same or a higher class, or another starter, is between them.
void recompose(std::vector<int32_t>& points) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto size = utf8proc_normalize_utf32(
      points.data(), static_cast<utf8proc_ssize_t>(points.size()), kOptions);
  points.resize(static_cast<size_t>(size));
}

}  // namespace

bool normalize_nfc(std::string_view text, std::string& out) {
  std::vector<int32_t> points;
  return normalize_nfc(text, out, points);
}

// ASCII and other inert code points are skipped without decoding into `points`. Only a stretch
// around code points that normalization may change is decomposed, reordered and recomposed;
// everything else is copied as bytes. A text without such code points is not copied at all.
bool normalize_nfc(std::string_view text, std::string& out, std::vector<int32_t>& points) {
  const char* const end = text.data() + text.size();
  const char* copied = text.data();    // everything before is in `out`
  const char* previous = text.data();  // the last inert code point
  bool changed = false;
  for (const char* p = text.data(); p < end;) {
    if (static_cast<uint8_t>(*p) < 0x80) {
      previous = p++;
      continue;
    }
    CodePoint c = decode(p, end);
    if (is_nfc_inert(c.value)) {
      // A byte that is not UTF-8 combines with nothing, and utf8proc must not see it.
      previous = c.value >= kInvalidByte ? p + 1 : p;
      p += c.size;
      continue;
    }
    // Process from the previous inert code point, which may compose with what follows, to the next
    // one.
    if (!changed) out.clear();
    changed = true;
    const char* from = std::max(previous, copied);
    out.append(copied, from);
    points.clear();
    for (p = from; p < end; p += c.size) {
      c = decode(p, end);
      if (p != from && is_nfc_inert(c.value)) break;
      decompose_to(c.value, points);
    }
    reorder(points);
    recompose(points);
    for (const int32_t point : points) append_utf8(static_cast<char32_t>(point), out);
    copied = previous = p;
  }
  if (changed) out.append(copied, end);
  return changed;
}

}  // namespace limpid::unicode

namespace limpid {

bool puts_space(SpacePrefix prefix, bool has_space, bool at_start) {
  if (prefix == SpacePrefix::kEveryPart) return true;
  return !has_space && (prefix == SpacePrefix::kEveryPartOnce ||
                        (prefix == SpacePrefix::kFirstPartOnce && at_start));
}

void collapse_spaces(std::string_view text, std::string& out) {
  out.clear();
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out.push_back(c);
  }
  // As in SentencePiece, U+2581 at the end of the text counts as a space.
  std::string_view kept = out;
  while (kept.ends_with(' ') || kept.ends_with(kSpaceMark))
    kept.remove_suffix(kept.ends_with(' ') ? 1 : kSpaceMark.size());
  out.resize(kept.size());
}

// NFC applies to byte-level BPE; the rest to SentencePiece BPE.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer) {
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    if (spec.normalize_nfc && unicode::normalize_nfc(text, buffer)) return buffer;
    return text;
  }
  if (!spec.normalizes_spaces) return text;
  buffer.clear();
  if (text.empty()) return buffer;
  if (spec.space_prefix == SpacePrefix::kEveryPart) buffer = kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      buffer += kSpaceMark;
    } else {
      buffer.push_back(c);
    }
  }
  return buffer;
}

}  // namespace limpid
