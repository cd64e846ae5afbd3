#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// `result` by reference: it is read only after the operation, whatever the order of the arguments.
int64_t checked(bool overflowed, const int64_t& result) {
  if (overflowed) fail("an integer grows beyond 64 bits");
  return result;
}

// Python rounds a quotient down, so a remainder has the sign of the divisor.
int64_t remainder(int64_t a, int64_t b) {
  if (b == 0) fail("integer modulo by zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// As Python's float modulo: the result is between zero and the divisor.
double remainder(double a, double b) {
  if (b == 0) fail("float modulo");
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

Value of_floats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(a + b);
    case BinaryOperator::kSub:
      return Value(a - b);
    case BinaryOperator::kMul:
      return Value(a * b);
    case BinaryOperator::kMod:
      return Value(remainder(a, b));
    default:
      if (b == 0) fail("division by zero");
      return Value(a / b);
  }
}

Value of_integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(checked(__builtin_add_overflow(a, b, &r), r));
    case BinaryOperator::kSub:
      return Value(checked(__builtin_sub_overflow(a, b, &r), r));
    case BinaryOperator::kMul:
      return Value(checked(__builtin_mul_overflow(a, b, &r), r));
    case BinaryOperator::kMod:
      return Value(remainder(a, b));
    default:
      return of_floats(op, static_cast<double>(a), static_cast<double>(b));
  }
}

// 'ab' * 3 and [1] * 3. The size is known before anything is made, so it is checked first.
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

// a + b of two texts or two sequences of one kind.
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

void require_defined(const Value& value) {
  if (value.is_undefined()) throw Fault(value.as<UndefinedObject>().message);
}

// Numbers come first, then what Python defines for texts and sequences. Everything else is an error
// that names the operator and both types, as Python's does.
Value binary(Budget& budget, BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::kConcat) {
    TracedText text = to_str(budget, a);
    append_str(budget, text, b);
    return make_string(budget, std::move(text));
  }
  if (op == BinaryOperator::kMod && a.is_string()) {
    return make_string(budget, format_percent(budget, a.traced(), b),
                       a.as<StringObject>().is_markup);
  }
  require_defined(a);
  require_defined(b);
  if (a.is_integral() && b.is_integral()) return of_integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return of_floats(op, a.real(), b.real());
  if (op == BinaryOperator::kAdd && is_repeatable(a) && a.kind() == b.kind()) {
    return concatenate(budget, a, b);
  }
  if (op == BinaryOperator::kMul) {
    if (is_repeatable(a) && b.is_integral()) return repeat(budget, a, b.integer());
    if (is_repeatable(b) && a.is_integral()) return repeat(budget, b, a.integer());
  }
  constexpr std::string_view kSymbols = "+-*/%";
  fail("unsupported operand type(s) for {}: '{}' and '{}'", kSymbols[static_cast<size_t>(op)],
       python_type_name(a), python_type_name(b));
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Kind::kFloat)) return Value(-value.real());
  if (!value.is_integral()) fail("bad operand type for unary -: '{}'", python_type_name(value));
  int64_t r = 0;
  return Value(checked(__builtin_sub_overflow(int64_t{0}, value.integer(), &r), r));
}

// None, zero and what is empty are false; values without a length, such as macros and generators,
// are true.
bool is_true(const Value& value) {
  if (value.is(Kind::kNone)) return false;
  if (value.is_number()) return value.real() != 0;
  return length_of(value).value_or(1) != 0;
}

}  // namespace limpid::jinja
