#include "jinja/item_lookup.h"

#include <algorithm>
#include <charconv>

#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {

ItemLookup::ItemLookup(Interpreter& interpreter, const Value& attribute, bool ignore_case,
                       const Value& otherwise)
    : interpreter_(interpreter), ignore_case_(ignore_case), otherwise_(otherwise) {
  if (attribute.is(Kind::kNone)) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  for (const auto part : split_text(attribute.text(), ".", -1)) {
    int64_t index = 0;
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (digits &&
        std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc()) {
      parts_.emplace_back(index);
    } else {
      parts_.push_back(make_string(interpreter.budget(), attribute.traced().part(part)));
    }
  }
}

Value ItemLookup::operator()(const Value& item) const {
  Value value = item;
  for (const auto& part : parts_) {
    interpreter_.budget().spend(1);
    value = interpreter_.get_item(value, part);
    if (value.is_undefined() && !otherwise_.is(Kind::kNone)) value = otherwise_;
  }
  if (ignore_case_ && value.is_string()) {
    return make_string(interpreter_.budget(), to_lower(value.traced()));
  }
  return value;
}

void sort_by_keys(Budget& budget, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  // Merging never reads outside the range, whatever an inconsistent order (NaN) answers.
  const auto less = [&](const auto& a, const auto& b) {
    return compare(budget, Comparison::kLt, reverse ? b.first : a.first,
                   reverse ? a.first : b.first);
  };
  std::stable_sort(keyed.begin(), keyed.end(), less);
}

}  // namespace limpid::jinja
