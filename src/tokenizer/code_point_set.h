// Sets of code points, for the character classes of regular expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/unicode.h"

namespace limpid::unicode {

// Stored as ascending ranges [first, last] that neither overlap nor touch. Surrogates are never in
// a set. Example: adding a-c, x and then d gives the ranges [a, d] and [x, x].
class CodePointSet {
 public:
  CodePointSet() = default;
  // All code points that have one of these properties.
  explicit CodePointSet(Properties properties);

  // Adds a range, both ends included. The other overload adds another set. Surrogates are left out.
  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  CodePointSet complement() const;  // all other code points up to U+10FFFF
  const std::vector<std::pair<char32_t, char32_t>>& ranges() const { return ranges_; }

 private:
  std::vector<std::pair<char32_t, char32_t>> ranges_;
};

// Returns the properties of a general category by its name ("L", "Lu", "Letter"), or nothing for an
// unknown name.
std::optional<Properties> category_named(std::string_view name);

}  // namespace limpid::unicode
