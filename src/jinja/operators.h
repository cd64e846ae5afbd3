// Python's operators over values, and how values print.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace limpid::jinja {

enum class BinaryOperator : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

bool is_true(const Value& value);
bool equals(Budget& budget, const Value& a, const Value& b);
// Throws Fault when Python has no order between the two.
bool compare(Budget& budget, Comparison how, const Value& a, const Value& b);
bool is_same_object(const Value& a, const Value& b);  // Python's `is`
bool contains(Budget& budget, const Value& container, const Value& item);

Value binary(Budget& budget, BinaryOperator op, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);
Value integer_power(int64_t base, int64_t exponent);

// len(); nothing when the value has none.
std::optional<int64_t> length_of(const Value& value);
// iter(); throws Fault when the value cannot be walked. Iterators give themselves.
std::shared_ptr<IteratorObject> iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);
std::vector<Value> to_vector(Budget& budget, const Value& value);
// reversed(); nothing when Python has no reversed() for it.
std::optional<std::vector<Value>> reversed_items(Budget& budget, const Value& value);
std::vector<Value> dict_view_items(Budget& budget, const Value& view);
// A vector that is walked once.
Value make_iterator(Budget& budget, std::vector<Value> items);

TracedText to_str(Budget& budget, const Value& value);  // str()
TracedText repr(Budget& budget, const Value& value);    // repr()
void append_str(Budget& budget, TracedText& out, const Value& value);
// Appends, unless `out` would need more memory than the budget has left.
void append_checked(Budget& budget, TracedText& out, TracedView part);
std::string float_repr(double value);
std::string loop_repr(Budget& budget, const Value& loop);
Value str_value(Budget& budget,
                const Value& value);  // str(), without a copy when it is one already

[[noreturn]] void throw_undefined(const Value& value);
// Throws what using an undefined value throws; else does nothing.
void require_defined(const Value& value);

// `text % values` and `text.format(…)`.
TracedText format_percent(Budget& budget, TracedView text, const Value& values);
// `spec` as in f-strings; for str, bool, int and float.
TracedText format_value(Budget& budget, const Value& value, TracedView spec);

TracedText escape_html(TracedView text);
// str.replace; `count` < 0: all.
TracedText replace_text(Budget& budget, TracedView text, std::string_view old, TracedView with,
                        int64_t count);

}  // namespace limpid::jinja
