#include "base/text.h"

#include <algorithm>

#include "base/check.h"

namespace limpid {

static constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed_left(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

std::string_view trimmed_right(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string_view trimmed(std::string_view text) { return trimmed_left(trimmed_right(text)); }

std::vector<std::string> split_list(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(separator));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    if (const std::string_view text = trimmed(part); !text.empty()) parts.emplace_back(text);
  }
  return parts;
}

std::vector<std::string> split_full_list(std::string_view list, std::string_view what) {
  std::vector<std::string> parts = split_list(list);
  LIMPID_CHECK(ArgumentError, std::ssize(parts) == std::ranges::count(list, ',') + 1,
               "{}: an entry of '{}' is empty", what, list);
  return parts;
}

std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t hit = 0; (hit = text.find(part, at)) != std::string_view::npos;) {
    out.append(text.substr(at, hit - at)).append(by);
    at = hit + part.size();
  }
  out.append(text.substr(at));
  return out;
}

}  // namespace limpid
