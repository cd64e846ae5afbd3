// Text as Python's `str` sees it: code points over UTF-8 bytes. Bytes that are not UTF-8 count as
// one code point each (U+FFFD when asked what it is) and are kept as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/traced_text.h"

namespace limpid::jinja {

// Reads the code point at byte `at` and moves `at` past it. `at` must be inside `text`.
char32_t next_code_point(std::string_view text, size_t& at);
// Calls visit(char32_t, std::string_view) with each code point of `text` and its bytes, in order.
template <typename Visit>
void for_each_code_point(std::string_view text, Visit&& visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    visit(c, text.substr(begin, at - begin));
  }
}

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);

// Full case mappings as of Unicode 14, without the final sigma. A mapped letter keeps its origin.
TracedText to_lower(TracedView text);
TracedText to_upper(TracedView text);
TracedText to_title(TracedView text);  // str.title: words begin after what has no case
// The filter `title`: words begin after white space, an opening bracket or a hyphen.
TracedText to_filter_title(TracedView text);
TracedText to_capitalized(TracedView text);

enum class Side : uint8_t { kLeft, kRight, kBoth };
// Removes white space, or else `characters`, from one end or both. The result is a view of `text`,
// so its origins can be asked.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> characters = {});

// Return a position in bytes, or npos. They take linear time for any texts: a template may search a
// very long text, so a quadratic search would be too slow.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);

// Pieces of str.split. `separator` must not be empty; `limit` < 0: no limit.
std::vector<std::string_view> split_text(std::string_view text, std::string_view separator,
                                         int64_t limit);
std::vector<std::string_view> split_space(std::string_view text, int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text);  // without their ends

}  // namespace limpid::jinja
