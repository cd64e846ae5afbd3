// ==, <, in and `is`.
#include <algorithm>
#include <cmath>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// -1, 0 or 1; nothing when one of them is not a number (NaN).
std::optional<int> order_of_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  if (std::isnan(a.real()) || std::isnan(b.real())) return std::nullopt;
  return a.real() < b.real() ? -1 : a.real() > b.real();
}

// Item by item; lists and tuples are compared only with their own kind.
bool equal_sequences(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&](const Value& x, const Value& y) { return equals(budget, x, y); });
}

// The order of entries does not count.
bool equal_dicts(Budget& budget, const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(budget, entry.first);
    return other != nullptr && equals(budget, entry.second, *other);
  });
}

// Whether an order of -1, 0 or 1 is what a comparison asks for.
// Called for <, <=, > and >= only.
bool satisfies(Comparison how, int order) {
  if (how == Comparison::kLt) return order < 0;
  if (how == Comparison::kLe) return order <= 0;
  return how == Comparison::kGt ? order > 0 : order >= 0;
}

}  // namespace

// Never throws for defined or undefined values: things of different kinds are not equal. Numbers
// are compared across kinds, so 1 == 1.0 == true.
bool equals(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return order_of_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.object() == b.object()) return true;
  switch (a.kind()) {
    case Kind::kUndefined:
      return true;
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      budget.spend_bytes(a.text().size());
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return equal_sequences(budget, a.as<SequenceObject>().items, b.as<SequenceObject>().items);
    case Kind::kDict:
      return equal_dicts(budget, a.as<DictObject>(), b.as<DictObject>());
    default:
      return false;
  }
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
    return std::any_of(items.begin(), items.end(), is_item);
  }
  if (!container.is(Kind::kGenerator)) return false;
  for (Value other; container.as<GeneratorObject>().next(other);) {
    if (is_item(other)) return true;
  }
  return false;
}

}  // namespace limpid::jinja
