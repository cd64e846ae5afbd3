// Python's operators and conversions over values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace limpid::jinja {

// The operators that compute with two values. The sign - is negate(). `and` and `or` may leave
// their right operand unevaluated, so they and `not` are in evaluation.cpp.
enum class BinaryOperator : uint8_t { kAdd, kSub, kMul, kDiv, kMod, kConcat };
enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// Truth, equality and order.
bool is_true(const Value& value);
bool equals(Budget& budget, const Value& a, const Value& b);
// Throws Fault when Python has no order between the two.
bool compare(Budget& budget, Comparison how, const Value& a, const Value& b);
bool contains(Budget& budget, const Value& container, const Value& item);

// Arithmetic, and `+`, `*`, `~` and `%` of texts and sequences. Throws Fault for operands that do
// not fit and for integers beyond 64 bits.
Value binary(Budget& budget, BinaryOperator op, const Value& a, const Value& b);
Value negate(const Value& value);

// len(); nothing for a value without a length. Undefined has the length 0.
std::optional<int64_t> length_of(const Value& value);
bool is_iterable(const Value& value);
// list(): the items of a sequence, the keys of a dict, the characters of a string, the remaining
// items of a generator. Throws Fault when the value is not iterable.
std::vector<Value> to_vector(Budget& budget, const Value& value);
// of[start:stop:step]; none stands for a bound that the template leaves out.
Value slice(Budget& budget, const Value& of, const Value& start, const Value& stop,
            const Value& step);

TracedText to_str(Budget& budget, const Value& value);  // str()
TracedText repr(Budget& budget, const Value& value);    // repr()
// Appends str(value).
void append_str(Budget& budget, TracedText& out, const Value& value);
// Appends and pays for it, unless `out` would need more memory than the budget has left.
void append_checked(Budget& budget, TracedText& out, TracedView part);
std::string float_repr(double value);
// str() as a Value; a string is returned without a copy.
Value str_value(Budget& budget, const Value& value);

// Throws the message of an undefined value, which names what is missing; else does nothing.
void require_defined(const Value& value);

// Throws Fault when the result could need more memory than the budget has left.
TracedText escape_html(Budget& budget, TracedView text);
// str.replace; `count` < 0: all.
TracedText replace_text(Budget& budget, TracedView text, std::string_view old, TracedView with,
                        int64_t count);
// `text % values`; what a text marked as safe takes in is escaped.
TracedText format_percent(Budget& budget, TracedView text, const Value& values, bool is_markup);

}  // namespace limpid::jinja
