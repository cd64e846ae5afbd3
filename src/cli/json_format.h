// Lets fmt print what a JSON value holds, in the format of that type:
//
//   fmt::format("{:>8} {:.3g}", tensor["type"], tensor["rms"])      "     f32 0.0713"
//
// A report is made once, as JSON, and its text for people is made from that document. So the text
// cannot say anything else than what `--json` gives, and a new member needs one function only. A
// string is printed without quotes. A number without a format is printed as JSON has it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/output.h"

template <>
struct fmt::formatter<limpid::cli::Json> {
  std::string_view format_of_value;

  // The format is read when the type of the value is known, in format().
  constexpr auto parse(format_parse_context& context) {
    const auto* const end = std::find(context.begin(), context.end(), '}');
    format_of_value = {context.begin(), static_cast<size_t>(end - context.begin())};
    return end;
  }
  auto format(const limpid::cli::Json& json, format_context& context) const {
    const auto print = [&](const auto& value) {
      const std::string pattern = fmt::format("{{:{}}}", format_of_value);
      return fmt::vformat_to(context.out(), pattern, fmt::make_format_args(value));
    };
    if (json.is_string()) return print(json.get_ref<const std::string&>());
    if (json.is_number_float() && !format_of_value.empty()) return print(json.get<double>());
    return json.is_number_integer() ? print(json.get<int64_t>()) : print(limpid::dump_json(json));
  }
};
