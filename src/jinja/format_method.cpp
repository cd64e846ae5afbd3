// text.format(…): fields, attributes and items of them, and format specifications.
#include <cmath>

#include "jinja/interpreter.h"
#include "jinja/number_format.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

struct Spec {
  TracedText fill{" ", Origin::kData};
  char align = 0;
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

int64_t read_number(std::string_view text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > 1'000'000) throw Fault("a width or precision in a format is too large");
  }
  return value;
}

Spec parse_spec(TracedView traced) {
  const std::string_view text = traced.bytes();
  Spec spec;
  size_t at = 0;
  if (!text.empty()) {
    size_t second = 0;
    next_code_point(text, second);
    if (second < text.size() && is_align(text[second])) {
      spec.fill = TracedText(traced.part(text.substr(0, second)));
      spec.align = text[second];
      at = second + 1;
    } else if (is_align(text[0])) {
      spec.align = text[at++];
    }
  }
  const auto take = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != std::string_view::npos ? text[at++] : '\0';
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (take("0") != 0) {
    spec.zero = true;
    if (spec.align == 0) {
      spec.fill = {"0", Origin::kData};
      spec.align = '=';
    }
  }
  spec.width = read_number(text, at);
  spec.grouping = take(",_");
  if (take(".") != 0) {
    if (at >= text.size() || text[at] < '0' || text[at] > '9') {
      throw Fault("format specifier is missing its precision");
    }
    spec.precision = read_number(text, at);
  }
  spec.type = take("sdxXobceEfFgGn%");
  if (at != text.size()) throw Fault("invalid format specifier '" + std::string(text) + "'");
  return spec;
}

TracedText aligned(Budget& budget, const Spec& spec, std::string_view prefix, TracedView text,
                   char natural) {
  const int64_t length = static_cast<int64_t>(prefix.size()) + count_code_points(text.bytes());
  const int64_t missing = std::max<int64_t>(spec.width - length, 0);
  budget.check_room(text.memory() + static_cast<size_t>(missing) * spec.fill.memory());
  budget.spend_bytes(text.size() + static_cast<size_t>(missing));
  const char align = spec.align == 0 ? natural : spec.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  TracedText out;
  if (align == '=') out.append(prefix, Origin::kData);
  for (int64_t i = 0; i < left; ++i) out.append(spec.fill);
  if (align != '=') out.append(prefix, Origin::kData);
  out.append(text);
  for (int64_t i = left; i < missing; ++i) out.append(spec.fill);
  return out;
}

TracedText aligned_number(Budget& budget, const Spec& spec, std::string_view sign,
                          std::string_view digits) {
  return aligned(budget, spec, sign, {digits, Origin::kData}, '>');
}

std::string sign_of(const Spec& spec, bool negative) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

TracedText format_real(Budget& budget, double value, const Spec& spec) {
  if (spec.type != 0 && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) {
    throw Fault(std::string("unknown format code '") + spec.type + "' for a float");
  }
  budget.spend(std::max<int64_t>(spec.precision, 0));  // a digit costs more than a byte
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits;
  if (spec.type == '%') {
    digits =
        float_digits(value * 100, 'f', spec.precision < 0 ? 6 : static_cast<int>(spec.precision),
                     spec.alternate);
    if (spec.grouping) digits = grouped(digits, spec.grouping, 3);
    digits += '%';
    return aligned_number(budget, spec, sign_of(spec, negative), digits);
  }
  if (spec.type == 0 && spec.precision < 0) {
    digits = float_repr(std::abs(value));
  } else if (spec.type == 0) {
    throw Fault("a float format without a type is not supported", Fault::Kind::kUnsupported);
  } else {
    digits =
        float_digits(value, spec.type == 'n' ? 'g' : spec.type,
                     spec.precision < 0 ? 6 : static_cast<int>(spec.precision), spec.alternate);
  }
  if (spec.grouping) digits = grouped(digits, spec.grouping, 3);
  return aligned_number(budget, spec, sign_of(spec, negative), digits);
}

TracedText format_integer(Budget& budget, int64_t value, const Spec& spec) {
  if (spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    return format_real(budget, static_cast<double>(value), spec);
  }
  if (spec.type == 's' || spec.precision >= 0) throw Fault("invalid format for an integer");
  if (spec.type == 'c') {
    if (value < 0 || value > 0x10FFFF) throw Fault("%c arg not in range(0x110000)");
    std::string text;
    append_code_point(text, static_cast<char32_t>(value));
    return aligned(budget, spec, "", {text, Origin::kData}, '<');
  }
  std::string digits = integer_digits(magnitude_of(value), spec.type == 0 ? 'd' : spec.type);
  const bool decimal = spec.type == 0 || spec.type == 'd' || spec.type == 'n';
  if (spec.grouping) digits = grouped(digits, spec.grouping, decimal ? 3 : 4);
  std::string prefix = sign_of(spec, value < 0);
  if (spec.alternate && !decimal) prefix += std::string("0") + spec.type;
  return aligned_number(budget, spec, prefix, digits);
}

class FieldFormatter {
 public:
  FieldFormatter(Interpreter& interpreter, const Arguments& arguments)
      : interpreter_(interpreter), budget_(interpreter.budget()), arguments_(arguments) {}

  TracedText run(TracedView traced, int depth) {
    if (depth > 2) throw Fault("max string recursion exceeded");
    const std::string_view text = traced.bytes();
    TracedText out;
    for (size_t at = 0; at < text.size();) {
      const TracedView letter = traced.part(text.substr(at, 1));
      const char c = text[at++];
      if (c != '{' && c != '}') {
        append_checked(budget_, out, letter);
        continue;
      }
      if (at < text.size() && text[at] == c) {
        append_checked(budget_, out, letter);
        ++at;
        continue;
      }
      if (c == '}') throw Fault("single '}' encountered in format string");
      append_checked(budget_, out, field(traced, at, depth));
    }
    return out;
  }

 private:
  // `at` stands behind the opening brace and is moved behind the closing one.
  TracedText field(TracedView traced, size_t& at, int depth) {
    const std::string_view text = traced.bytes();
    const size_t begin = at;
    int nesting = 1;
    bool in_brackets = false;
    for (; at < text.size(); ++at) {
      if (text[at] == '[') in_brackets = true;
      if (text[at] == ']') in_brackets = false;
      if (in_brackets) continue;
      if (text[at] == '{') ++nesting;
      if (text[at] == '}' && --nesting == 0) break;
    }
    if (at >= text.size()) throw Fault("expected '}' before end of string");
    const std::string_view inside = text.substr(begin, at++ - begin);
    size_t name_end = 0;
    in_brackets = false;
    while (name_end < inside.size()) {
      const char c = inside[name_end];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == ':' || c == '!')) break;
      ++name_end;
    }
    const std::string_view name = inside.substr(0, name_end);
    std::string_view rest = inside.substr(name_end);
    Value value = resolve(name);
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2) throw Fault("end of string while looking for conversion specifier");
      const char conversion = rest[1];
      rest.remove_prefix(2);
      if (conversion == 's') {
        value = str_value(budget_, value);
      } else if (conversion == 'r') {
        value = make_string(budget_, repr(budget_, value));
      } else {
        throw Fault("unknown conversion specifier");
      }
      if (!rest.empty() && rest[0] != ':') throw Fault("expected ':' after conversion specifier");
    }
    const TracedText spec =
        rest.empty() ? TracedText() : run(traced.part(rest.substr(1)), depth + 1);
    return format_value(budget_, value, spec);
  }

  Value resolve(std::string_view name) {
    size_t end = name.find_first_of(".[");
    if (end == std::string_view::npos) end = name.size();
    const std::string_view first = name.substr(0, end);
    Value value = first_value(first);
    size_t at = end;
    while (at < name.size()) {
      if (name[at] == '.') {
        const size_t stop = std::min(name.find_first_of(".[", at + 1), name.size());
        value = interpreter_.get_attribute(value, name.substr(at + 1, stop - at - 1));
        at = stop;
        continue;
      }
      const size_t close = name.find(']', at);
      if (name[at] != '[' || close == std::string_view::npos) {
        throw Fault("only '.' or '[' may follow in a format field");
      }
      const std::string_view key = name.substr(at + 1, close - at - 1);
      size_t digits = 0;
      const int64_t index = read_number(key, digits);
      const bool is_index = !key.empty() && digits == key.size();
      value = interpreter_.get_item(
          value, is_index ? Value(index) : make_string(budget_, TracedView(key, Origin::kData)));
      at = close + 1;
    }
    return value;
  }

  Value first_value(std::string_view name) {
    size_t digits = 0;
    size_t index = static_cast<size_t>(read_number(name, digits));
    if (name.empty() || digits == name.size()) {
      if (name.empty()) index = automatic_++;
      if (index >= arguments_.positional.size()) throw Fault("replacement index out of range");
      return arguments_.positional[index];
    }
    budget_.spend(static_cast<int64_t>(arguments_.named.size()));
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    throw Fault("the format has no value for '" + std::string(name) + "'");
  }

  Interpreter& interpreter_;
  Budget& budget_;
  const Arguments& arguments_;
  size_t automatic_ = 0;
};

}  // namespace

TracedText format_value(Budget& budget, const Value& value, TracedView spec_text) {
  if (spec_text.size() == 0) return to_str(budget, value);
  const Spec spec = parse_spec(spec_text);
  if (value.is(Kind::kInt)) return format_integer(budget, value.integer(), spec);
  if (value.is(Kind::kBool) && spec.type != 0 && spec.type != 's') {
    return format_integer(budget, value.integer(), spec);
  }
  if (value.is(Kind::kFloat)) return format_real(budget, value.real(), spec);
  if (!value.is_string() || (spec.type != 0 && spec.type != 's') || spec.align == '=') {
    throw Fault("unsupported format for " + std::string(python_type_name(value)));
  }
  std::string_view text = value.text();
  if (spec.precision >= 0) text = text.substr(0, byte_offset(text, spec.precision));
  return aligned(budget, spec, "", value.traced().part(text), '<');
}

Value method_format(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return make_string(interpreter.budget(),
                     FieldFormatter(interpreter, arguments).run(self.traced(), 1),
                     self.as<StringObject>().is_markup);
}

}  // namespace limpid::jinja
