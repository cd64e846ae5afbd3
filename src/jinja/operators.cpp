#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void throw_no_operator(BinaryOperator op, const Value& a, const Value& b) {
  throw Fault("unsupported operand type(s) for " + std::string(kSymbols[static_cast<int>(op)]) +
              ": '" + std::string(python_type_name(a)) + "' and '" +
              std::string(python_type_name(b)) + "'");
}

// `result` by reference: it is read only after the operation, whatever the order of the arguments.
int64_t checked(bool overflowed, const int64_t& result) {
  if (overflowed) throw Fault("an integer grows beyond 64 bits");
  return result;
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) throw Fault("integer division or modulo by zero");
  if (b == -1) {
    int64_t r = 0;
    return checked(__builtin_sub_overflow(int64_t{0}, a, &r), r);
  }
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) throw Fault("integer division or modulo by zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_mod(double a, double b) {
  if (b == 0) throw Fault("float modulo");
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

double float_floor_div(double a, double b) {
  if (b == 0) throw Fault("float floor division by zero");
  const double mod = float_mod(a, b);
  const double quotient = (a - mod) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) throw Fault("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    throw Fault("complex numbers are not supported");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    throw Fault("the result of ** is too large");
  }
  return result;
}

Value integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(checked(__builtin_add_overflow(a, b, &r), r));
    case BinaryOperator::kSub:
      return Value(checked(__builtin_sub_overflow(a, b, &r), r));
    case BinaryOperator::kMul:
      return Value(checked(__builtin_mul_overflow(a, b, &r), r));
    case BinaryOperator::kDiv:
      if (b == 0) throw Fault("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDiv:
      return Value(floor_div(a, b));
    case BinaryOperator::kMod:
      return Value(floor_mod(a, b));
    case BinaryOperator::kPow:
      return integer_power(a, b);
  }
  return {};
}

Value floats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(a + b);
    case BinaryOperator::kSub:
      return Value(a - b);
    case BinaryOperator::kMul:
      return Value(a * b);
    case BinaryOperator::kDiv:
      if (b == 0) throw Fault("float division by zero");
      return Value(a / b);
    case BinaryOperator::kFloorDiv:
      return Value(float_floor_div(a, b));
    case BinaryOperator::kMod:
      return Value(float_mod(a, b));
    case BinaryOperator::kPow:
      return Value(float_power(a, b));
  }
  return {};
}

Value repeat(Budget& budget, const Value& sequence, int64_t times) {
  const size_t count = times > 0 ? static_cast<size_t>(times) : 0;
  const auto check = [&](size_t size) {
    size_t total = 0;
    if (__builtin_mul_overflow(size, count, &total)) total = SIZE_MAX / 2;
    budget.check_room(total);
    budget.spend_bytes(total);
  };
  if (sequence.is_string()) {
    const auto& string = sequence.as<StringObject>();
    check(string.text.empty() ? 0 : string.text.memory() + sizeof(size_t));
    TracedText out;
    if (!string.text.empty()) {
      for (size_t i = 0; i < count; ++i) out.append(string.text);
    }
    return make_string(budget, std::move(out), string.is_markup);
  }
  const auto& items = sequence.as<SequenceObject>().items;
  check(items.size() * sizeof(Value));
  std::vector<Value> out;
  out.reserve(items.size() * count);
  if (!items.empty()) {
    for (size_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  return sequence.is(Kind::kList) ? make_list(budget, std::move(out))
                                  : make_tuple(budget, std::move(out));
}

Value concatenate(Budget& budget, const Value& a, const Value& b) {
  if (a.is_string()) {
    const auto& left = a.as<StringObject>();
    const auto& right = b.as<StringObject>();
    budget.check_room(left.text.memory() + right.text.memory());
    // Markup escapes what is added to it.
    TracedText out = right.is_markup && !left.is_markup ? escape_html(left.text) : left.text;
    if (left.is_markup && !right.is_markup) {
      out.append(escape_html(right.text));
    } else {
      out.append(right.text);
    }
    return make_string(budget, std::move(out), left.is_markup || right.is_markup);
  }
  const auto& left = a.as<SequenceObject>().items;
  const auto& right = b.as<SequenceObject>().items;
  budget.check_room((left.size() + right.size()) * sizeof(Value));
  budget.spend_bytes((left.size() + right.size()) * sizeof(Value));
  std::vector<Value> out = left;
  out.insert(out.end(), right.begin(), right.end());
  return a.is(Kind::kList) ? make_list(budget, std::move(out)) : make_tuple(budget, std::move(out));
}

bool is_repeatable(const Value& value) {
  return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple);
}

}  // namespace

void throw_undefined(const Value& value) { throw Fault(value.as<UndefinedObject>().message); }

void require_defined(const Value& value) {
  if (value.is_undefined()) throw_undefined(value);
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value(float_power(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1) checked(__builtin_mul_overflow(result, base, &result), result);
    exponent >>= 1;
    if (exponent > 0) checked(__builtin_mul_overflow(base, base, &base), base);
  }
  return Value(result);
}

Value binary(Budget& budget, BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::kMod && a.is_string()) {
    budget.spend_bytes(a.text().size());
    return make_string(budget, format_percent(budget, a.traced(), b),
                       a.as<StringObject>().is_markup);
  }
  require_defined(a);
  require_defined(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return floats(op, a.real(), b.real());
  if (op == BinaryOperator::kAdd && is_repeatable(a) && a.kind() == b.kind()) {
    return concatenate(budget, a, b);
  }
  if (op == BinaryOperator::kMul) {
    if (is_repeatable(a) && b.is_integral()) return repeat(budget, a, b.integer());
    if (is_repeatable(b) && a.is_integral()) return repeat(budget, b, a.integer());
  }
  throw_no_operator(op, a, b);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Kind::kFloat)) return Value(-value.real());
  if (!value.is_integral()) {
    throw Fault("bad operand type for unary -: '" + std::string(python_type_name(value)) + "'");
  }
  int64_t r = 0;
  return Value(checked(__builtin_sub_overflow(int64_t{0}, value.integer(), &r), r));
}

Value plus(const Value& value) {
  require_defined(value);
  if (value.is(Kind::kFloat)) return value;
  if (value.is_integral()) return Value(value.integer());
  throw Fault("bad operand type for unary +: '" + std::string(python_type_name(value)) + "'");
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
    case Kind::kUndefined:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0;
    default:
      break;
  }
  if (value.is(Kind::kLoop)) return true;  // while it runs there is at least one item
  const auto length = length_of(value);
  return !length || *length != 0;
}

}  // namespace limpid::jinja
