// Values with items: their length, their items, slices of them.
#include <algorithm>

#include "base/utf8.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The items that a slice takes: `count` of them from `start`, `step` apart. `stop` is the bound
// that they do not reach; only a range shows it.
struct Stretch {
  int64_t start, stop, step, count;
};

int64_t slice_index(const Value& value) {
  require_defined(value);
  if (!value.is_integral()) fail("slice indices must be integers or None");
  return value.integer();
}

// A bound of a slice as an index. One that lies outside of the sequence moves to its end.
int64_t slice_bound(const Value& value, int64_t otherwise, int64_t length, bool backwards) {
  if (value.is(Kind::kNone)) return otherwise;
  int64_t index = slice_index(value);
  if (index < 0) index = index < -length ? -1 : index + length;
  if (index < 0) return backwards ? -1 : 0;
  return std::min(index, backwards ? length - 1 : length);
}

// Python's slice.indices(): a missing bound is the end in the direction of the step, a negative one
// counts from the back, and one outside is moved to the nearest end. So messages[::-1] has start =
// length - 1, step = -1, count = length.
Stretch stretch(const Value& start, const Value& stop, const Value& step, int64_t length) {
  int64_t by = step.is(Kind::kNone) ? 1 : slice_index(step);
  if (by == 0) fail("slice step cannot be zero");
  by = std::max(by, -INT64_MAX);  // so that -by fits, as in CPython
  const bool backwards = by < 0;
  const int64_t first = slice_bound(start, backwards ? length - 1 : 0, length, backwards);
  const int64_t last = slice_bound(stop, backwards ? -1 : length, length, backwards);
  const int64_t span = backwards ? first - last : last - first;
  const int64_t stride = backwards ? -by : by;
  return {first, last, by, span <= 0 ? 0 : (span - 1) / stride + 1};
}

// Indices count characters and UTF-8 has characters of several sizes. A plain slice walks to its
// two ends; one with a step first notes where every character begins.
Value slice_text(Budget& budget, const Value& of, const Stretch& taken) {
  const bool is_markup = of.as<StringObject>().is_markup;
  const std::string_view text = of.text();
  if (taken.step == 1) {
    const size_t begin = unicode::character_offset(text, taken.start);
    const size_t size = unicode::character_offset(text.substr(begin), taken.count);
    budget.spend_bytes(begin + size);
    return make_string(budget, of.traced().part(text.substr(begin, size)), is_markup);
  }
  budget.pay_for_buffer(text.size() * sizeof(size_t));
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); next_code_point(text, at)) starts.push_back(at);
  starts.push_back(text.size());
  TracedText out;
  for (int64_t i = 0; i < taken.count; ++i) {
    const auto index = static_cast<size_t>(taken.start + i * taken.step);
    append_checked(budget, out,
                   of.traced().part(text.substr(starts[index], starts[index + 1] - starts[index])));
  }
  return make_string(budget, std::move(out), is_markup);
}

// A string for each character, each with the origin that it had in the text.
std::vector<Value> characters(Budget& budget, const Value& string) {
  std::vector<Value> items;
  budget.check_room(static_cast<size_t>(*length_of(string)) * sizeof(Value));
  unicode::for_each_character(string.text(), [&](std::string_view character) {
    items.push_back(make_string(budget, string.traced().part(character)));
  });
  return items;
}

}  // namespace

// Undefined has the length 0, so that `{% for x in nothing %}` is an empty loop and not an error,
// as in Jinja.
std::optional<int64_t> length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return value.as<StringObject>().length;
  if (value.is_sequence()) return static_cast<int64_t>(value.as<SequenceObject>().items.size());
  if (value.is(Kind::kDict)) return static_cast<int64_t>(value.as<DictObject>().entries.size());
  return std::nullopt;
}

bool is_iterable(const Value& value) {
  return value.is(Kind::kGenerator) || length_of(value).has_value();
}

// Copies share the items' objects. Their room is checked first, since a template may ask for many
// copies of one list.
std::vector<Value> to_vector(Budget& budget, const Value& value) {
  if (value.is_string()) return characters(budget, value);
  if (!is_iterable(value)) fail("'{}' object is not iterable", python_type_name(value));
  std::vector<Value> items;
  if (value.is_sequence()) {
    budget.pay_for_buffer(value.as<SequenceObject>().items.size() * sizeof(Value));
    items = value.as<SequenceObject>().items;
  } else if (value.is(Kind::kDict)) {
    budget.pay_for_buffer(value.as<DictObject>().entries.size() * sizeof(Value));
    for (const auto& entry : value.as<DictObject>().entries) items.push_back(entry.first);
  } else if (value.is(Kind::kGenerator)) {
    for (Value item; value.as<GeneratorObject>().next(item);) items.push_back(std::move(item));
  }
  return items;
}

// A slice has the type of its operand (text, list, tuple or range), as in Python. Views of dicts
// and generators have no positions, so they cannot be sliced.
Value slice(Budget& budget, const Value& of, const Value& start, const Value& stop,
            const Value& step) {
  require_defined(of);
  if (!of.is_string() && (!of.is_sequence() || of.is(Kind::kDictView))) {
    fail("'{}' object cannot be sliced", python_type_name(of));
  }
  const Stretch taken = stretch(start, stop, step, *length_of(of));
  if (of.is_string()) return slice_text(budget, of, taken);
  if (of.is(Kind::kRange)) {
    // The bounds and the step are Python's, because printing shows them: range(10)[::3] is
    // range(0, 10, 3). binary() refuses an integer beyond 64 bits.
    const auto& range = of.as<RangeObject>();
    const auto scaled = [&](int64_t index) {
      return binary(budget, BinaryOperator::kMul, Value(index), Value(range.step));
    };
    const auto bound = [&](int64_t index) {
      return binary(budget, BinaryOperator::kAdd, Value(range.start), scaled(index)).integer();
    };
    return {Kind::kRange,
            std::make_shared<RangeObject>(&budget, bound(taken.start), bound(taken.stop),
                                          scaled(taken.step).integer())};
  }
  const auto& items = of.as<SequenceObject>().items;
  budget.pay_for_buffer(static_cast<size_t>(taken.count) * sizeof(Value));
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(taken.count));
  for (int64_t i = 0; i < taken.count; ++i) {
    out.push_back(items[static_cast<size_t>(taken.start + i * taken.step)]);
  }
  return of.is(Kind::kList) ? make_list(budget, std::move(out))
                            : make_tuple(budget, std::move(out));
}

}  // namespace limpid::jinja
