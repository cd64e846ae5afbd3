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
  if (op == BinaryOperator::kAdd) return Value(a + b);
  if (op == BinaryOperator::kSub) return Value(a - b);
  if (op == BinaryOperator::kMul) return Value(a * b);
  if (op == BinaryOperator::kMod) return Value(remainder(a, b));
  if (b == 0) fail("division by zero");
  return Value(a / b);
}

Value of_integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == BinaryOperator::kAdd) return Value(checked(__builtin_add_overflow(a, b, &r), r));
  if (op == BinaryOperator::kSub) return Value(checked(__builtin_sub_overflow(a, b, &r), r));
  if (op == BinaryOperator::kMul) return Value(checked(__builtin_mul_overflow(a, b, &r), r));
  if (op == BinaryOperator::kMod) return Value(remainder(a, b));
  return of_floats(op, static_cast<double>(a), static_cast<double>(b));
}

// 'ab' * 3 and [1] * 3. The size is known before anything is made, so it is checked first.
Value repeat(Budget& budget, const Value& sequence, int64_t times) {
  const size_t count = times > 0 && *length_of(sequence) > 0 ? static_cast<size_t>(times) : 0;
  const auto check = [&](size_t size) {
    size_t total = 0;
    if (__builtin_mul_overflow(size, count, &total)) total = SIZE_MAX / 2;
    budget.pay_for_buffer(total);
  };
  if (sequence.is_string()) {
    const auto& string = sequence.as<StringObject>();
    check(string.text.memory() + sizeof(size_t));
    TracedText out;
    for (size_t i = 0; i < count; ++i) out.append(string.text);
    return make_string(budget, std::move(out), string.is_markup);
  }
  const auto& items = sequence.as<SequenceObject>().items;
  check(items.size() * sizeof(Value));
  std::vector<Value> out;
  out.reserve(items.size() * count);
  for (size_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
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
    TracedText out =
        right.is_markup && !left.is_markup ? escape_html(budget, left.text) : left.text;
    if (left.is_markup && !right.is_markup) {
      out.append(escape_html(budget, right.text));
    } else {
      out.append(right.text);
    }
    return make_string(budget, std::move(out), left.is_markup || right.is_markup);
  }
  const auto& left = a.as<SequenceObject>().items;
  const auto& right = b.as<SequenceObject>().items;
  budget.pay_for_buffer((left.size() + right.size()) * sizeof(Value));
  std::vector<Value> out = left;
  out.insert(out.end(), right.begin(), right.end());
  return a.is(Kind::kList) ? make_list(budget, std::move(out)) : make_tuple(budget, std::move(out));
}

bool is_repeatable(const Value& value) {
  return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple);
}

// -1, 0 or 1; nothing when one of them is not a number (NaN).
std::optional<int> order_of_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  if (std::isnan(a.real()) || std::isnan(b.real())) return std::nullopt;
  return a.real() < b.real() ? -1 : a.real() > b.real();
}

// The order of entries does not count.
bool equal_dicts(Budget& budget, const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const Value* other = b.find(budget, entry.first);
    return other != nullptr && equals(budget, entry.second, *other);
  });
}

// Whether an order of -1, 0 or 1 satisfies the comparison, one of <, <=, > and >=.
bool satisfies(Comparison how, int order) {
  if (how == Comparison::kLt) return order < 0;
  if (how == Comparison::kLe) return order <= 0;
  return how == Comparison::kGt ? order > 0 : order >= 0;
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
    const bool is_markup = a.as<StringObject>().is_markup;
    return make_string(budget, format_percent(budget, a.traced(), b, is_markup), is_markup);
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

// Never throws for defined or undefined values: things of different kinds, such as a list and a
// tuple, are not equal. Numbers are compared across kinds, so 1 == 1.0 == true.
bool equals(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return order_of_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.object() == b.object()) return true;
  if (a.is_undefined()) return true;
  if (a.is_string()) {
    if (a.text().size() != b.text().size()) return false;
    budget.spend_bytes(a.text().size());
    return a.text() == b.text();
  }
  if (a.is(Kind::kDict)) return equal_dicts(budget, a.as<DictObject>(), b.as<DictObject>());
  if (!a.is_sequence() || a.is(Kind::kDictView)) return false;
  const auto same = [&](const Value& x, const Value& y) { return equals(budget, x, y); };
  return std::ranges::equal(a.as<SequenceObject>().items, b.as<SequenceObject>().items, same);
}

// Lists and tuples are ordered like words in a dictionary: by the first items that differ, then by
// length.
bool compare(Budget& budget, Comparison how, const Value& a, const Value& b) {
  if (how == Comparison::kEq || how == Comparison::kNe)
    return equals(budget, a, b) == (how == Comparison::kEq);
  if (how == Comparison::kIn || how == Comparison::kNotIn)
    return contains(budget, b, a) == (how == Comparison::kIn);
  budget.spend(1);
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) {
    const auto order = order_of_numbers(a, b);
    return order && satisfies(how, *order);
  }
  if (a.is_string() && b.is_string()) {
    // UTF-8 keeps the order of code points.
    budget.spend_bytes(std::min(a.text().size(), b.text().size()));
    return satisfies(how, a.text().compare(b.text()));
  }
  if (a.kind() != b.kind() || !(a.is(Kind::kList) || a.is(Kind::kTuple))) {
    constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
    fail("'{}' not supported between instances of '{}' and '{}'",
         kSymbols[static_cast<size_t>(how)], python_type_name(a), python_type_name(b));
  }
  const auto& left = a.as<SequenceObject>().items;
  const auto& right = b.as<SequenceObject>().items;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!equals(budget, left[i], right[i])) {
      return compare(budget, how, left[i], right[i]);
    }
  }
  return satisfies(how, left.size() < right.size() ? -1 : left.size() > right.size());
}

// A text contains its parts, a dict its keys, everything else its items. Looking into a generator
// takes items out of it up to the one that was found, as in Python.
bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      fail("'in <string>' requires string as left operand, not {}", python_type_name(item));
    }
    budget.spend_bytes(container.text().size() + item.text().size());
    return find_text(container.text(), item.text()) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) return container.as<DictObject>().find(budget, item) != nullptr;
  if (!is_iterable(container)) {
    fail("argument of type '{}' is not iterable", python_type_name(container));
  }
  const auto is_item = [&](const Value& other) { return equals(budget, other, item); };
  if (container.is_sequence()) {
    const auto& items = container.as<SequenceObject>().items;
    return std::ranges::any_of(items, is_item);
  }
  if (!container.is(Kind::kGenerator)) return false;
  for (Value other; container.as<GeneratorObject>().next(other);) {
    if (is_item(other)) return true;
  }
  return false;
}

}  // namespace limpid::jinja
