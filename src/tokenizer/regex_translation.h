// Oniguruma's regular expressions -> PCRE2's, with the categories of our own tables.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// The same expression for PCRE2 in UTF mode. The two differ in what `\p{L}` and `\s` are (PCRE2's
// Unicode is older), so classes name the characters that it lacks; and in `{1,3}+` (not possessive
// in Oniguruma), `^` and `$` (always of a line), `.` and `\v`.
//
// Throws UnsupportedError that names what it does not translate: \w \b \h \X \R, back references,
// named groups, conditions, comments, flags (but `(?i:…)` around contractions), POSIX brackets,
// intersections.
std::string translate_regex(std::string_view pattern);

}  // namespace limpid
