// Texts without the blanks around them, lists and lines of texts, and texts with parts replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// The text without blanks, tabs and ends of lines at its beginning, at its end, or at both.
std::string_view trimmed_left(std::string_view text);
std::string_view trimmed_right(std::string_view text);
std::string_view trimmed(std::string_view text);

// The parts of a list, trimmed: "a, b,,c" has "a", "b" and "c". Empty parts are skipped.
std::vector<std::string> split_list(std::string_view list, char separator = ',');

// Likewise, but throws ArgumentError, which names the list as `what`, for an empty part.
std::vector<std::string> split_full_list(std::string_view list, std::string_view what);

// Removes the first line from `rest` and returns it without its end ("\n" or "\r\n").
std::string_view take_line(std::string_view& rest);

// `text` with `by` in the place of each `part`, which must not be empty, from left to right. Takes
// linear time for a given `part`.
std::string replaced(std::string_view text, std::string_view part, std::string_view by);

}  // namespace limpid
