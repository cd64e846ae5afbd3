#include "tokenizer/code_point_set.h"

#include <algorithm>

namespace limpid::unicode {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

}  // namespace

CodePointSet::CodePointSet(Properties properties) {
  for (char32_t c = 0; c <= kLast; ++c) {
    if ((properties_of(c) & properties) == 0) continue;
    if (!ranges_.empty() && ranges_.back().second + 1 == c) {
      ranges_.back().second = c;
    } else {
      ranges_.emplace_back(c, c);
    }
  }
  const CodePointSet all = std::move(*this);
  ranges_.clear();
  add(all);
}

void CodePointSet::add(char32_t first, char32_t last) {
  if (first < kFirstSurrogate && last >= kFirstSurrogate) {
    add(first, kFirstSurrogate - 1);
    first = kFirstSurrogate;
  }
  if (first >= kFirstSurrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
  if (first > last) return;
  // Joins ranges that overlap or touch.
  auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                [](const auto& range, char32_t c) { return range.second + 1 < c; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->second);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const auto& [first, last] : other.ranges_) add(first, last);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet result;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) result.add(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) result.add(next, kLast);
  return result;
}

std::optional<Properties> category_named(std::string_view name) {
  struct Named {
    std::string_view name, long_name;
    Properties properties;
  };
  static constexpr Named kNames[] = {
      {"L", "Letter", kLetter},
      {"M", "Mark", kMark},
      {"N", "Number", kNumber},
      {"P", "Punctuation", kPunctuation},
      {"S", "Symbol", kSymbol},
      {"Z", "Separator", bit(kZs) | bit(kZl) | bit(kZp)},
      {"Lu", "Uppercase_Letter", bit(kLu)},
      {"Ll", "Lowercase_Letter", bit(kLl)},
      {"Lt", "Titlecase_Letter", bit(kLt)},
      {"Lm", "Modifier_Letter", bit(kLm)},
      {"Lo", "Other_Letter", bit(kLo)},
      {"Mn", "Nonspacing_Mark", bit(kMn)},
      {"Mc", "Spacing_Mark", bit(kMc)},
      {"Me", "Enclosing_Mark", bit(kMe)},
      {"Nd", "Decimal_Number", bit(kNd)},
      {"Nl", "Letter_Number", bit(kNl)},
      {"No", "Other_Number", bit(kNo)},
      {"Pc", "Connector_Punctuation", bit(kPc)},
      {"Pd", "Dash_Punctuation", bit(kPd)},
      {"Ps", "Open_Punctuation", bit(kPs)},
      {"Pe", "Close_Punctuation", bit(kPe)},
      {"Pi", "Initial_Punctuation", bit(kPi)},
      {"Pf", "Final_Punctuation", bit(kPf)},
      {"Po", "Other_Punctuation", bit(kPo)},
      {"Sm", "Math_Symbol", bit(kSm)},
      {"Sc", "Currency_Symbol", bit(kSc)},
      {"Sk", "Modifier_Symbol", bit(kSk)},
      {"So", "Other_Symbol", bit(kSo)},
      {"Zs", "Space_Separator", bit(kZs)},
      {"Zl", "Line_Separator", bit(kZl)},
      {"Zp", "Paragraph_Separator", bit(kZp)},
      {"Cc", "Control", bit(kCc)},
      {"Cf", "Format", bit(kCf)},
      {"Co", "Private_Use", bit(kCo)},
  };
  for (const Named& known : kNames) {
    if (known.name == name || known.long_name == name) return known.properties;
  }
  return std::nullopt;
}

}  // namespace limpid::unicode
