#include "tokenizer/regex_categories.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <string>
#include <vector>

#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr int kCategories = unicode::kCo + 1;
constexpr const char* kNames[kCategories] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};

struct CategoryRun {
  char32_t first, last;
  uint8_t category;
};

// Returns PCRE2's category of every scalar value, by matching all of them with one group per
// category.
std::vector<CategoryRun> ask_pcre2() {
  std::string subject;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    unicode::append_utf8(c, subject);
  }
  std::string pattern;
  for (const char* name : kNames)
    pattern += fmt::format("{}(\\p{{{}}}+)", pattern.empty() ? "" : "|", name);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF, &error, &offset, nullptr);
  pcre2_match_data* data =
      code == nullptr ? nullptr : pcre2_match_data_create_from_pattern(code, nullptr);
  std::vector<CategoryRun> runs;
  const char* const begin = subject.data();
  const char* const end = begin + subject.size();
  for (size_t at = 0; data != nullptr && at < subject.size();) {
    const int group = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(begin), subject.size(), at,
                                  PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, data, nullptr);
    if (group < 2) break;
    const size_t stop = pcre2_get_ovector_pointer(data)[1];
    size_t last = stop - 1;
    while ((static_cast<uint8_t>(begin[last]) & 0xC0) == 0x80) --last;
    runs.push_back({unicode::decode(begin + at, end).value,
                    unicode::decode(begin + last, end).value, static_cast<uint8_t>(group - 2)});
    at = stop;
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  if (runs.empty() || runs.back().last != 0x10FFFF)
    throw ResourceError("[tokenizer] cannot determine PCRE2's categories");
  return runs;
}

// Code points that have different categories in our tables and in PCRE2's.
struct DifferentRange {
  char32_t first, last;
  unicode::Properties ours, theirs;
};

// Compares both tables for every code point and joins equal differences into ranges.
std::vector<DifferentRange> find_differences() {
  constexpr unicode::Properties kAnyCategory = unicode::bit(unicode::Category(kCategories)) - 1;
  std::vector<DifferentRange> ranges;
  for (const CategoryRun& run : ask_pcre2()) {
    const unicode::Properties theirs = unicode::bit(unicode::Category(run.category));
    for (char32_t c = run.first; c <= run.last; ++c) {
      const unicode::Properties ours = unicode::properties_of(c) & kAnyCategory;
      if (ours == theirs || (c >= 0xD800 && c < 0xE000)) continue;
      if (!ranges.empty() && ranges.back().last + 1 == c && ranges.back().ours == ours &&
          ranges.back().theirs == theirs) {
        ranges.back().last = c;
      } else {
        ranges.push_back({c, c, ours, theirs});
      }
    }
  }
  return ranges;
}

}  // namespace

// The differences are computed once per process; a class then selects the ranges that concern it.
CategoryDifference compare_categories(unicode::Properties categories) {
  static const std::vector<DifferentRange> different = find_differences();
  CategoryDifference difference;
  for (const DifferentRange& range : different) {
    const bool ours = (range.ours & categories) != 0;
    const bool theirs = (range.theirs & categories) != 0;
    if (ours && !theirs) difference.missing.add(range.first, range.last);
    if (theirs && !ours) difference.extra.add(range.first, range.last);
  }
  return difference;
}

const char* category_name(unicode::Category category) { return kNames[category]; }

}  // namespace limpid
