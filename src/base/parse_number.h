// Numbers in text: names of files, metadata, environment variables.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace limpid {

// The number that `text` is as a whole, in decimal digits: "12" but not "12a", " 12" or "". Nothing
// for other text, and for a number that does not fit `Number`. The locale has no effect.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

// An f32 as the shortest decimal number that rounds to it: 1e-05 instead of 9.99999974e-06.
inline double shortest_decimal(double value) {
  return *parse_number<double>(fmt::format("{}", static_cast<float>(value)));
}

}  // namespace limpid
