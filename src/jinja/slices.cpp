#include "jinja/slices.h"

#include <algorithm>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The indices that a slice takes: `count` of them from `start`, `step` apart (slice.indices).
struct Stretch {
  int64_t start, step, count;
};

int64_t bound(const Value& value, int64_t otherwise, int64_t length, bool backwards) {
  if (value.is(Kind::kNone)) return otherwise;
  if (!value.is_integral()) {
    require_defined(value);
    throw Fault("slice indices must be integers or None");
  }
  int64_t index = value.integer();
  if (index < 0) index = index < -length ? -1 : index + length;
  if (index < 0) return backwards ? -1 : 0;
  return std::min(index, backwards ? length - 1 : length);
}

Stretch stretch(const Value& start, const Value& stop, const Value& step, int64_t length) {
  int64_t by = 1;
  if (!step.is(Kind::kNone)) {
    if (!step.is_integral()) {
      require_defined(step);
      throw Fault("slice indices must be integers or None");
    }
    by = step.integer();
  }
  if (by == 0) throw Fault("slice step cannot be zero");
  // Steps longer than the sequence take one item at most.
  by = std::clamp(by, -length - 1, length + 1);
  const bool backwards = by < 0;
  const int64_t first = bound(start, backwards ? length - 1 : 0, length, backwards);
  const int64_t last = bound(stop, backwards ? -1 : length, length, backwards);
  const int64_t span = backwards ? first - last : last - first;
  const int64_t stride = backwards ? -by : by;
  return {first, by, span <= 0 ? 0 : (span - 1) / stride + 1};
}

Value slice_text(Budget& budget, const Value& of, const Stretch& taken) {
  const auto& string = of.as<StringObject>();
  const std::string_view text = of.text();
  if (taken.step == 1) {
    const size_t begin = byte_offset(text, taken.start);
    const size_t size = byte_offset(text.substr(begin), taken.count);
    budget.spend_bytes(begin + size);
    return make_string(budget, of.traced().part(text.substr(begin, size)), string.is_markup);
  }
  budget.check_room(text.size() * sizeof(size_t));
  budget.spend_bytes(text.size() * sizeof(size_t));
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); next_code_point(text, at)) starts.push_back(at);
  starts.push_back(text.size());
  TracedText out;
  for (int64_t i = 0; i < taken.count; ++i) {
    const auto index = static_cast<size_t>(taken.start + i * taken.step);
    append_checked(budget, out,
                   of.traced().part(text.substr(starts[index], starts[index + 1] - starts[index])));
  }
  return make_string(budget, std::move(out), string.is_markup);
}

}  // namespace

Value slice(Budget& budget, const Value& of, const Value& start, const Value& stop,
            const Value& step) {
  require_defined(of);
  if (!of.is_string() && !of.is(Kind::kList) && !of.is(Kind::kTuple) && !of.is(Kind::kRange)) {
    throw Fault("'" + std::string(python_type_name(of)) + "' object cannot be sliced");
  }
  const Stretch taken = stretch(start, stop, step, *length_of(of));
  if (of.is_string()) return slice_text(budget, of, taken);
  if (of.is(Kind::kRange)) {
    const auto& range = of.as<RangeObject>();
    const int64_t first = range.at(taken.start);
    const int64_t by = range.step * taken.step;
    return {Kind::kRange,
            std::make_shared<RangeObject>(&budget, first, first + by * taken.count, by)};
  }
  const auto& items = of.as<SequenceObject>().items;
  budget.check_room(static_cast<size_t>(taken.count) * sizeof(Value));
  budget.spend_bytes(static_cast<size_t>(taken.count) * sizeof(Value));
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(taken.count));
  for (int64_t i = 0; i < taken.count; ++i) {
    out.push_back(items[static_cast<size_t>(taken.start + i * taken.step)]);
  }
  return of.is(Kind::kList) ? make_list(budget, std::move(out))
                            : make_tuple(budget, std::move(out));
}

}  // namespace limpid::jinja
