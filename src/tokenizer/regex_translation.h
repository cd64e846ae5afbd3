// Translates Oniguruma's regular expressions to PCRE2's, with the categories of our own tables.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// Returns the equivalent expression for PCRE2 in UTF mode. The two differ in the characters of
// `\p{L}` and `\s` (PCRE2's Unicode is older, so classes list the missing characters), in `{1,3}+`
// (not possessive in Oniguruma), in `^` and `$` (Oniguruma: always of a line), and in `.` and `\v`.
//
// Throws UnsupportedError naming a construct that it does not translate: \w \b \h \X \R, back
// references, named groups, conditions, comments, flags (except `(?i:…)` around contractions),
// POSIX brackets, intersections.
std::string translate_regex(std::string_view pattern);

}  // namespace limpid
