#include "tokenizer/normalize.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode.h"

namespace limpid::unicode {
namespace {

// Hangul syllables are composed by arithmetic (Unicode 16, section 3.12).
constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

uint8_t combining_class(char32_t c) {
  if (c < 0x300) return 0;
  const auto* end = kCombiningClasses + kCombiningClassCount;
  const auto* it =
      std::lower_bound(kCombiningClasses, end, c,
                       [](const CombiningClass& e, char32_t v) { return e.code_point < v; });
  return it != end && it->code_point == c ? it->value : 0;
}

const Decomposition* decomposition(char32_t c) {
  if (c < 0xC0) return nullptr;
  const auto* end = kDecompositions + kDecompositionCount;
  const auto* it = std::lower_bound(
      kDecompositions, end, c, [](const Decomposition& e, char32_t v) { return e.code_point < v; });
  return it != end && it->code_point == c ? it : nullptr;
}

// Returns the code point that `first` and `second` compose to, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (first - kLBase < kLCount && second - kVBase < kVCount) {
    return kSBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (first - kSBase < kSCount && (first - kSBase) % kTCount == 0 && second > kTBase &&
      second - kTBase < kTCount) {
    return first + (second - kTBase);
  }
  const auto* end = kCompositions + kCompositionCount;
  const auto* it =
      std::lower_bound(kCompositions, end, std::pair(first, second),
                       [](const Composition& e, const std::pair<char32_t, char32_t>& v) {
                         return std::pair(e.first, e.second) < v;
                       });
  return it != end && it->first == first && it->second == second ? it->composed : 0;
}

void decompose_to(char32_t c, std::vector<char32_t>& out) {
  if (c - kSBase < kSCount) {
    const char32_t index = c - kSBase;
    out.push_back(kLBase + index / (kVCount * kTCount));
    out.push_back(kVBase + index % (kVCount * kTCount) / kTCount);
    if (index % kTCount != 0) out.push_back(kTBase + index % kTCount);
  } else if (const Decomposition* d = decomposition(c)) {
    out.insert(out.end(), kDecompositionParts + d->first,
               kDecompositionParts + d->first + d->count);
  } else {
    out.push_back(c);
  }
}

// A stable insertion sort: std::stable_sort allocates, and there are rarely more than two marks.
void sort_by_class(std::vector<char32_t>::iterator first, std::vector<char32_t>::iterator last) {
  const auto before = [](char32_t a, char32_t b) {
    return combining_class(a) < combining_class(b);
  };
  if (last - first > 16) return std::stable_sort(first, last, before);
  for (auto it = first; it != last; ++it)
    std::rotate(std::upper_bound(first, it, *it, before), it, it + 1);
}

// Canonical ordering: sorts the characters between two starters by combining class, stably.
void reorder(std::vector<char32_t>& points) {
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
void recompose(std::vector<char32_t>& points) {
  constexpr size_t kNone = ~size_t{0};
  size_t size = 0;
  size_t starter = kNone;
  int last_class = -1;  // class of the last character kept after the starter; -1: none
  for (const char32_t c : points) {
    const int value = combining_class(c);
    if (starter != kNone && last_class < value) {
      const char32_t composed = compose(points[starter], c);
      if (composed != 0) {
        points[starter] = composed;
        continue;
      }
    }
    if (value == 0) {
      starter = size;
      last_class = -1;
    } else {
      last_class = value;
    }
    points[size++] = c;
  }
  points.resize(size);
}

}  // namespace

bool normalize_nfc(std::string_view text, std::string& out) {
  std::vector<char32_t> points;
  return normalize_nfc(text, out, points);
}

// ASCII and other inert code points are skipped without decoding into `points`. Only a stretch
// around code points that normalization may change is decomposed, reordered and recomposed;
// everything else is copied as bytes. A text without such code points is not copied at all.
bool normalize_nfc(std::string_view text, std::string& out, std::vector<char32_t>& points) {
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
      previous = p;
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
    for (const char32_t point : points) append_utf8(point, out);
    copied = previous = p;
  }
  if (changed) out.append(copied, end);
  return changed;
}

}  // namespace limpid::unicode

namespace limpid {

// NFC applies to byte-level BPE; the rest to SentencePiece BPE.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer) {
  constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    if (spec.normalize_nfc && unicode::normalize_nfc(text, buffer)) return buffer;
    return text;
  }
  if (spec.space_prefix != SpacePrefix::kEveryPart && spec.space_prefix != SpacePrefix::kNone)
    return text;
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
