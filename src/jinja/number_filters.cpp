// Filters over numbers, and those that give a value for another.
#include <charconv>
#include <cmath>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The digits of int(text, base) and float(text): trimmed, single underscores between digits
// dropped.
std::optional<std::string> plain_number(std::string_view text) {
  const std::string_view trimmed = strip(text, Side::kBoth);
  std::string out;
  for (size_t i = 0; i < trimmed.size(); ++i) {
    if (trimmed[i] != '_') {
      out += trimmed[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < trimmed.size() &&
                         std::isalnum(static_cast<unsigned char>(trimmed[i - 1])) &&
                         std::isalnum(static_cast<unsigned char>(trimmed[i + 1]));
    if (!between) return std::nullopt;
  }
  return out;
}

std::optional<double> parse_float(std::string_view text) {
  const auto number = plain_number(text);
  if (!number || number->empty()) return std::nullopt;
  std::string lower = to_lower(TracedView(*number, Origin::kData)).bytes();
  const char sign = lower[0];
  if (sign == '+' || sign == '-') lower.erase(0, 1);
  if (lower.empty()) return std::nullopt;
  const double factor = sign == '-' ? -1 : 1;
  if (lower == "inf" || lower == "infinity") return factor * HUGE_VAL;
  if (lower == "nan") return std::nan("");
  if (lower[0] != '.' && !(lower[0] >= '0' && lower[0] <= '9')) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (result.ptr != lower.data() + lower.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    value = lower.find("e-") != std::string::npos ? 0 : HUGE_VAL;
  }
  return factor * value;
}

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  auto number = plain_number(text);
  if (!number || number->empty()) return std::nullopt;
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  std::string digits = *number;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.erase(0, 1);
  if (digits.size() > 2 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    const int64_t named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      base = named;
      digits.erase(0, 2);
    }
  }
  if (base == 0) base = 10;
  if (digits.empty() || !std::isalnum(static_cast<unsigned char>(digits[0]))) return std::nullopt;
  if (negative) digits.insert(0, 1, '-');
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, static_cast<int>(base));
  if (result.ptr != end) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    throw Fault("an integer needs more than 64 bits");
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 0x1p63) throw Fault("an integer needs more than 64 bits");
  return static_cast<int64_t>(value);
}

Value filter_int(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"default", "base"});
  require_defined(self);
  Value otherwise = parameters.has(0) ? parameters[0] : Value(int64_t{0});
  if (self.is_integral()) return Value(self.integer());
  if (self.is(Kind::kFloat)) {
    if (std::isinf(self.real())) throw Fault("cannot convert float infinity to integer");
    const auto whole = truncated(self.real());
    return whole ? Value(*whole) : otherwise;
  }
  if (!self.is_string()) return otherwise;
  if (const auto value = parse_integer(self.text(), parameters.integer(1, 10)))
    return Value(*value);
  const auto real = parse_float(self.text());
  const auto whole = real ? truncated(*real) : std::nullopt;
  return whole ? Value(*whole) : otherwise;
}

Value filter_float(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"default"});
  require_defined(self);
  const Value otherwise = parameters.has(0) ? parameters[0] : Value(0.0);
  if (self.is_number()) return Value(self.real());
  const auto real = self.is_string() ? parse_float(self.text()) : std::nullopt;
  return real ? Value(*real) : otherwise;
}

Value filter_abs(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  require_defined(self);
  if (self.is(Kind::kFloat)) return Value(std::abs(self.real()));
  if (!self.is_integral()) {
    throw Fault("bad operand type for abs(): '" + std::string(python_type_name(self)) + "'");
  }
  return self.integer() < 0 ? negate(self) : Value(self.integer());
}

// round() of a float: to even on exact ties of its decimal expansion.
double round_to(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  char buffer[800];
  if (digits >= 0) {
    const auto written = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                       std::chars_format::fixed, static_cast<int>(digits));
    double rounded = 0;
    std::from_chars(buffer, written.ptr, rounded);
    return rounded;
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return Value(value);
  if (digits < -18) return Value(int64_t{0});
  int64_t scale = 1;
  for (int64_t i = 0; i < -digits; ++i) scale *= 10;
  int64_t rest = value % scale;
  if (rest < 0) rest += scale;
  const int64_t down = value - rest;
  const bool is_odd = (down / scale) % 2 != 0;
  const bool up = rest > scale - rest || (rest == scale - rest && is_odd);
  int64_t result = down;
  if (up && __builtin_add_overflow(down, scale, &result)) {
    throw Fault("an integer grows beyond 64 bits");
  }
  return Value(result);
}

Value filter_round(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"precision", "method"});
  const std::string method =
      parameters.has(1) ? to_str(interpreter.budget(), parameters[1]).bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    throw Fault("method must be common, ceil or floor");
  }
  require_defined(self);
  if (!self.is_number()) {
    throw Fault("type " + std::string(python_type_name(self)) + " cannot be rounded");
  }
  const int64_t digits = parameters.integer(0, 0);
  if (method == "common") {
    return self.is_integral() ? round_integer(self.integer(), digits)
                              : Value(round_to(self.real(), digits));
  }
  // math.ceil and math.floor give an integer, which is then divided.
  const Value scale = integer_power(10, digits);
  Budget& budget = interpreter.budget();
  const double scaled = binary(budget, BinaryOperator::kMul, self, scale).real();
  const auto whole = truncated(method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  if (!whole) throw Fault("cannot convert float to integer");
  return binary(budget, BinaryOperator::kDiv, Value(*whole), scale);
}

Value filter_default(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"default_value", "boolean"});
  if (!self.is_undefined() && !(parameters.truth(1, false) && !is_true(self))) return self;
  return parameters.has(0) ? parameters[0] : make_string(interpreter.budget(), TracedText());
}

Value filter_attr(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"name"}, 1);
  if (!parameters[0].is_string()) throw Fault("attribute name must be string");
  if (self.is(Kind::kDict)) {  // attributes only, never items
    const auto* method = find_dict_method(parameters[0].text());
    if (method == nullptr) {
      return interpreter.undefined("'dict object' has no attribute '" +
                                   std::string(parameters[0].text()) + "'");
    }
  }
  return interpreter.get_attribute(self, parameters[0].text());
}

constexpr NamedBuiltin kFilters[] = {
    {"abs", filter_abs},         {"attr", filter_attr},   {"d", filter_default},
    {"default", filter_default}, {"float", filter_float}, {"int", filter_int},
    {"round", filter_round},
};

}  // namespace

const NamedBuiltin* find_number_filter(std::string_view name) {
  return find_builtin(kFilters, name);
}

}  // namespace limpid::jinja
