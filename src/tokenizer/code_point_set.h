// Sets of code points, as character classes of regular expressions need them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/unicode.h"

namespace limpid::unicode {

// Ascending ranges, first and last within, that do not touch. Surrogates are never in.
class CodePointSet {
 public:
  CodePointSet() = default;
  // All that have one of these properties.
  explicit CodePointSet(Properties properties);

  // The range with both its ends, or all of another set; surrogates are left out.
  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  CodePointSet complement() const;  // all other code points up to U+10FFFF
  const std::vector<std::pair<char32_t, char32_t>>& ranges() const { return ranges_; }

 private:
  std::vector<std::pair<char32_t, char32_t>> ranges_;
};

// The properties of a general category's name ("L", "Lu", "Letter"), if it is known.
std::optional<Properties> category_named(std::string_view name);

}  // namespace limpid::unicode
