// Filters that return text. Each applies str() to its operand: {{ 5|trim }} is legal and returns
// '5'.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// A filter that takes anything and works on its text (markupsafe.soft_str): `run` gets a string. A
// string is taken as it is, without a copy.
template <Value (*run)(BuiltinCall&)>
Value on_text(BuiltinCall& call) {
  const Value text = str_value(call.budget, call.self);
  BuiltinCall with_text(call, text);
  return run(with_text);
}

Value filter_string(BuiltinCall& call) { return call.self; }

// Like transformers, the environment escapes nothing by itself: `safe` only marks a string, and `+`
// then escapes what is added to it (markupsafe.Markup).
Value filter_safe(BuiltinCall& call) { return make_string(call.budget, call.self.traced(), true); }

// escape does not change a text that is already safe.
Value filter_escape(BuiltinCall& call) {
  if (call.self.as<StringObject>().is_markup) return call.self;
  return make_string(call.budget, escape_html(call.budget, call.self.traced()), true);
}

// Unlike the method, the filter turns all its arguments into text first.
Value filter_replace(BuiltinCall& call) {
  const TracedText text = to_str(call.budget, call.self);
  const TracedText old = to_str(call.budget, call[0]);
  const TracedText with = to_str(call.budget, call[1]);
  return make_string(call.budget,
                     replace_text(call.budget, text, old.bytes(), with, call.integer(2, -1)));
}

// Indents all lines but the first, and empty lines only when asked: indent(2, first=true,
// blank=true). A newline is added before the lines are split, as in Jinja, so a text that ends in a
// newline keeps its last, empty line.
Value filter_indent(BuiltinCall& call) {
  require_defined(call.self);
  if (!call.self.is_string()) fail("the indent filter needs a string");
  Budget& budget = call.budget;
  const TracedText indent = indentation(call, 0, 4);
  TracedText text(call.self.traced());
  text.append("\n", Origin::kData);
  const auto lines = split_lines(text.bytes());
  budget.check_room(text.size() + lines.size() * sizeof(std::string_view));
  TracedText out = call.truth(1, false) ? indent : TracedText();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.append("\n", Origin::kData);
      if (call.truth(2, false) || !lines[i].empty()) append_checked(budget, out, indent);
    }
    append_checked(budget, out, TracedView(text).part(lines[i]));
  }
  return call.text(std::move(out));
}

// '%s: %s'|format(a, b)
Value filter_format(BuiltinCall& call) {
  if (!call.arguments.named.empty()) refuse("the filter 'format' with keyword arguments");
  const Value values = make_tuple(call.budget, call.arguments.positional);
  const bool is_markup = call.self.as<StringObject>().is_markup;
  return call.text(format_percent(call.budget, call.self.traced(), values, is_markup));
}

// The number that the whole `text` spells; nothing if it is not a number. Unlike
// limpid::parse_number, it is Python's also where it does not fit.
template <typename Number>
std::optional<Number> python_number(std::string_view text) {
  Number value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::invalid_argument || result.ptr != text.data() + text.size())
    return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    if constexpr (std::is_integral_v<Number>) fail("a number in a text is too large");
    // 1e-400 is 0; 1e400 is infinity, which is not an integer.
    if (text.find('-', 1) == std::string_view::npos) return std::nullopt;
  }
  return value;
}

// int(): a number in decimal digits, else a decimal fraction without what follows the point, else
// the default.
Value filter_int(BuiltinCall& call) {
  require_defined(call.self);
  if (call.has(1)) refuse("the filter 'int' with a base");
  Value otherwise = call.value_or(0, Value(int64_t{0}));
  if (call.self.is_integral()) return Value(call.self.integer());
  std::optional<double> real;
  if (call.self.is(Kind::kFloat)) real = call.self.real();
  if (call.self.is_string()) {
    std::string_view text = strip(call.self.text(), Side::kBoth);
    if (text.find('_') != std::string_view::npos) refuse("the filter 'int' of a text with '_'");
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    if (const auto value = python_number<int64_t>(text)) return Value(*value);
    real = python_number<double>(text);
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  return Value(truncated(*real));
}

// default(x) replaces what is undefined; default(x, true) also what is false, such as '' and none.
Value filter_default(BuiltinCall& call) {
  const bool is_missing = call.self.is_undefined() || (call.truth(1, false) && !is_true(call.self));
  return is_missing ? call.value_or(0, make_string(call.budget, TracedText())) : call.self;
}

constexpr Builtin kTable[] = {
    {"capitalize", on_text<in_case<to_capitalized>>},
    {"d", filter_default, {"default_value", "boolean"}},
    {"default", filter_default, {"default_value", "boolean"}},
    {"e", on_text<filter_escape>},
    {"escape", on_text<filter_escape>},
    {"format", on_text<filter_format>, {}, 0, Builtin::Passing::kAny},
    {"indent", filter_indent, {"width", "first", "blank"}},
    {"int", filter_int, {"default", "base"}},
    {"lower", on_text<in_case<to_lower>>},
    {"replace", filter_replace, {"old", "new", "count"}, 2},
    {"safe", on_text<filter_safe>},
    {"string", on_text<filter_string>},
    {"title", on_text<in_case<to_filter_title>>},
    {"tojson", filter_tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"trim", on_text<method_strip>, {"chars"}},
    {"upper", on_text<in_case<to_upper>>},
};

}  // namespace

const std::span<const Builtin> kTextFilters = kTable;

int64_t truncated(double real) {
  if (!(std::abs(real) < 0x1p63)) fail("an integer needs more than 64 bits");
  return static_cast<int64_t>(real);
}

TracedText indentation(const BuiltinCall& call, size_t i, int64_t otherwise) {
  if (call.has(i) && call[i].is_string()) return TracedText(call[i].traced());
  const int64_t width = std::max<int64_t>(call.integer(i, otherwise), 0);
  call.budget.check_room(static_cast<size_t>(width));
  return {std::string(static_cast<size_t>(width), ' '), Origin::kData};
}

// Searches in the text as it was: what is put in is not searched again. `from` is where the next
// search begins and `kept` how far the text has been copied; they differ only for an empty `old`.
TracedText replace_text(Budget& budget, TracedView text, std::string_view old, TracedView with,
                        int64_t count) {
  const std::string_view bytes = text.bytes();
  TracedText out;
  size_t kept = 0;  // up to here the text is in `out`
  for (size_t from = 0; count != 0; --count) {
    const size_t hit = find_text(bytes, old, from);
    if (hit == std::string_view::npos) break;
    append_checked(budget, out, text.part(bytes.substr(kept, hit - kept)));
    append_checked(budget, out, with);
    kept = from = hit + old.size();
    if (!old.empty()) continue;  // an empty `old` is found before each character and at the end
    if (from == bytes.size()) break;
    next_code_point(bytes, from);
  }
  append_checked(budget, out, text.part(bytes.substr(kept)));
  return out;
}

}  // namespace limpid::jinja
