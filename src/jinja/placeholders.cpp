// text % values and text.format(…), as far as chat templates use them: %s, %d and %%; {}, {0},
// {name} and {…:d}. Widths, precisions and conversions are refused by name.
#include "jinja/builtins.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

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
  size_t index = 0;
  if (name.empty()) {
    index = n_automatic++;
  } else if (name.find_first_not_of("0123456789") == std::string_view::npos && name.size() < 10) {
    index = std::stoul(std::string(name));
  } else {
    for (const auto& [key, value] : arguments.named) {
      if (key == name) return value;
    }
    fail("format() has no argument '{}'", name);
  }
  if (index >= arguments.positional.size()) fail("format() has no argument {}", index);
  return arguments.positional[index];
}

}  // namespace

// The values are the items of a tuple, or one value: '%s' % x and '%s %s' % (x, y).
TracedText format_percent(Budget& budget, TracedView text, const Value& values) {
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
      append_checked(budget, out,
                     kind == "d" ? integer_text(budget, value) : to_str(budget, value));
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
