// Methods of str. They take their arguments by position, as in Python, and a string marked as safe
// stays so.
#include <algorithm>

#include "base/utf8.h"
#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// strip, lstrip and rstrip: of white space, or of a set of characters.
template <Side side>
Value stripped(BuiltinCall& call) {
  std::optional<std::string_view> characters;
  if (call.has_value(0)) characters = call.string(0);
  return call.part(strip(call.self.text(), side, characters));
}

// split() at runs of white space, split(separator) at each separator; at most `maxsplit` times.
Value method_split(BuiltinCall& call) {
  const std::string_view text = call.self.text();
  const int64_t limit = call.integer(1, -1);
  call.budget.check_room(text.size() * sizeof(std::string_view));
  if (call.has_value(0) && call.string(0).empty()) fail("empty separator");
  const auto pieces =
      call.has_value(0) ? split_text(text, call.string(0), limit) : split_space(text, limit);
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto piece : pieces) items.push_back(call.part(piece));
  return make_list(call.budget, std::move(items));
}

// The bytes of self[start:end]; nothing when the start lies after the end.
std::optional<std::string_view> window(const BuiltinCall& call) {
  const int64_t length = call.self.as<StringObject>().length;
  const auto bound = [&](size_t i, int64_t otherwise) {
    const int64_t index = call.integer(i, otherwise);
    return index < 0 ? std::max<int64_t>(index + length, 0) : index;
  };
  const int64_t start = bound(1, 0);
  const int64_t stop = std::min(bound(2, length), length);
  if (start > stop) return std::nullopt;
  const std::string_view whole = call.self.text();
  const std::string_view text = whole.substr(unicode::character_offset(whole, start));
  return text.substr(0, unicode::character_offset(text, stop - start));
}

// startswith and endswith: a string, or a tuple of which one has to match.
template <bool at_end>
Value affix(BuiltinCall& call) {
  const auto where = window(call);
  const auto matches = [&](const Value& candidate) {
    require_defined(candidate);
    if (!candidate.is_string()) fail("must be str, not {}", python_type_name(candidate));
    if (!where) return false;
    return at_end ? where->ends_with(candidate.text()) : where->starts_with(candidate.text());
  };
  if (!call[0].is(Kind::kTuple)) return Value(matches(call[0]));
  const auto& candidates = call[0].as<SequenceObject>().items;
  call.budget.spend(static_cast<int64_t>(candidates.size()));
  return Value(std::ranges::any_of(candidates, matches));
}

// If the text is marked as safe, the replacement is escaped, because it might come from a user.
Value method_replace(BuiltinCall& call) {
  const std::string_view old = call.string(0);
  call.string(1);
  TracedText with(call[1].traced());
  if (call.self.as<StringObject>().is_markup) with = escape_html(call.budget, with);
  return call.text(replace_text(call.budget, call.self.traced(), old, with, call.integer(2, -1)));
}

// Unlike the filter, the method takes only strings.
Value method_join(BuiltinCall& call) {
  require_defined(call[0]);
  TracedText out;
  bool is_first = true;
  for (const auto& item : to_vector(call.budget, call[0])) {
    if (!item.is_string()) {
      fail("sequence item: expected str instance, {} found", python_type_name(item));
    }
    if (!std::exchange(is_first, false)) append_checked(call.budget, out, call.self.traced());
    const bool escapes =
        call.self.as<StringObject>().is_markup && !item.as<StringObject>().is_markup;
    append_checked(call.budget, out,
                   escapes ? escape_html(call.budget, item.traced()) : TracedText(item.traced()));
  }
  return call.text(std::move(out));
}

constexpr auto kByPosition = Builtin::Passing::kByPosition;
constexpr Builtin kTable[] = {
    {"capitalize", in_case<to_capitalized>},
    {"endswith", affix<true>, {"suffix", "start", "end"}, 1, kByPosition},
    {"format", method_format, {}, 0, Builtin::Passing::kAny},
    {"join", method_join, {"iterable"}, 1, kByPosition},
    {"lower", in_case<to_lower>},
    {"lstrip", stripped<Side::kLeft>, {"chars"}, 0, kByPosition},
    {"replace", method_replace, {"old", "new", "count"}, 2, kByPosition},
    {"rstrip", stripped<Side::kRight>, {"chars"}, 0, kByPosition},
    {"split", method_split, {"sep", "maxsplit"}},
    {"startswith", affix<false>, {"prefix", "start", "end"}, 1, kByPosition},
    {"strip", method_strip, {"chars"}, 0, kByPosition},
    {"title", in_case<to_title>},
    {"upper", in_case<to_upper>},
};

// The text of a value that a placeholder asks for as an integer.
TracedText integer_text(Budget& budget, const Value& value) {
  require_defined(value);
  if (!value.is_integral()) fail("format d needs an integer, not {}", python_type_name(value));
  return to_str(budget, Value(value.integer()));
}

// The value of {}, {0} or {name}. `n_automatic` counts the empty names so far.
// As in Python, {} and {0} may not fail silently: an argument that is not there is an error that
// names it.
const Value& placeholder_value(const Arguments& arguments, std::string_view name,
                               size_t& n_automatic) {
  const auto index = name.empty() ? static_cast<int64_t>(n_automatic++) : index_of(name);
  if (!index) {
    for (const auto& [key, value] : arguments.named) {
      if (key == name) return value;
    }
    fail("format() has no argument '{}'", name);
  }
  if (*index >= std::ssize(arguments.positional)) fail("format() has no argument {}", *index);
  return arguments.positional[static_cast<size_t>(*index)];
}

}  // namespace

const std::span<const Builtin> kStringMethods = kTable;

Value method_strip(BuiltinCall& call) { return stripped<Side::kBoth>(call); }

// text % values and text.format(…), as far as chat templates use them: %s, %d and %%; {}, {0},
// {name} and {…:d}. Widths, precisions and conversions are refused by name.

// The values are the items of a tuple, or one value: '%s' % x and '%s %s' % (x, y).
TracedText format_percent(Budget& budget, TracedView text, const Value& values, bool is_markup) {
  const std::string_view bytes = text.bytes();
  const bool is_tuple = values.is(Kind::kTuple);
  const std::vector<Value> items =
      is_tuple ? values.as<SequenceObject>().items : std::vector<Value>{values};
  TracedText out;
  size_t n_used = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    append_checked(budget, out, text.part(bytes.substr(at, percent - at)));
    if (percent == bytes.size()) break;
    const std::string_view kind = bytes.substr(percent + 1, 1);
    at = percent + 2;
    if (kind == "%") {
      append_checked(budget, out, text.part(kind));
    } else if (kind != "s" && kind != "d") {
      refuse("the format '%{}'", kind);
    } else if (n_used == items.size()) {
      fail("not enough arguments for format string");
    } else {
      const Value& value = items[n_used++];
      const bool is_cut = kind == "d" && value.is(Kind::kFloat);
      const Value number = is_cut ? Value(truncated(value.real())) : value;
      const TracedText shown = kind == "d" ? integer_text(budget, number) : to_str(budget, number);
      const bool is_safe = value.is_string() && value.as<StringObject>().is_markup;
      append_checked(budget, out, is_markup && !is_safe ? escape_html(budget, shown) : shown);
    }
  }
  // As in Python, a mapping may stay unused.
  if (n_used < items.size() && !values.is(Kind::kDict) && !values.is(Kind::kList)) {
    fail("not all arguments converted during string formatting");
  }
  return out;
}

// {} takes the arguments in their order, {0} and {name} choose one. Literal text keeps its origins,
// and what a placeholder becomes has those of its value.
Value method_format(BuiltinCall& call) {
  const TracedView text = call.self.traced();
  const std::string_view bytes = text.bytes();
  TracedText out;
  size_t n_automatic = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    append_checked(call.budget, out, text.part(bytes.substr(at, brace - at)));
    if (brace == bytes.size()) break;
    if (bytes.substr(brace + 1, 1) == bytes.substr(brace, 1)) {  // {{ or }}
      append_checked(call.budget, out, text.part(bytes.substr(brace, 1)));
      at = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos) {
      fail("a brace in a format string has no partner");
    }
    std::string_view name = bytes.substr(brace + 1, close - brace - 1);
    const bool as_integer = name.ends_with(":d");
    if (as_integer) name.remove_suffix(2);
    if (name.find_first_of("!:.[{") != std::string_view::npos) refuse("the format '{{{}}}'", name);
    const Value& value = placeholder_value(call.arguments, name, n_automatic);
    append_checked(call.budget, out,
                   as_integer ? integer_text(call.budget, value) : to_str(call.budget, value));
    at = close + 1;
  }
  return call.text(std::move(out));
}

}  // namespace limpid::jinja
