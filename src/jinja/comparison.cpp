// ==, <, in and `is`.
#include <algorithm>
#include <cmath>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// Exact, also where a double cannot hold the integer.
int compare_numbers(const Value& a, const Value& b, bool& ordered) {
  ordered = true;
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  const double left = a.real();
  const double right = b.real();
  ordered = !std::isnan(left) && !std::isnan(right);
  if (left != right || !ordered) return left < right ? -1 : left > right;
  if (std::abs(left) < 0x1p53 || a.kind() == b.kind()) return 0;
  const bool a_is_float = a.is(Kind::kFloat);
  const double real = a_is_float ? left : right;
  const int64_t integer = a_is_float ? b.integer() : a.integer();
  if (real >= 0x1p63) return a_is_float ? 1 : -1;
  const auto whole = static_cast<int64_t>(real);
  const int order = whole < integer ? -1 : whole > integer;
  return a_is_float ? order : -order;
}

bool equal_sequences(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](const Value& x, const Value& y) {
           return is_same_object(x, y) || equals(budget, x, y);
         });
}

bool equal_dicts(Budget& budget, const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(budget, entry.first);
    return other != nullptr && equals(budget, entry.second, *other);
  });
}

bool equal_ranges(const RangeObject& a, const RangeObject& b) {
  if (a.length != b.length) return false;
  return a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step));
}

bool satisfies(Comparison how, int order) {
  switch (how) {
    case Comparison::kLt:
      return order < 0;
    case Comparison::kLe:
      return order <= 0;
    case Comparison::kGt:
      return order > 0;
    case Comparison::kGe:
      return order >= 0;
    case Comparison::kEq:
      return order == 0;
    case Comparison::kNe:
      return order != 0;
  }
  return false;
}

[[noreturn]] void throw_no_order(Comparison how, const Value& a, const Value& b) {
  constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
  throw Fault("'" + std::string(kSymbols[static_cast<int>(how)]) +
              "' not supported between instances of '" + std::string(python_type_name(a)) +
              "' and '" + std::string(python_type_name(b)) + "'");
}

}  // namespace

bool is_same_object(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
    case Kind::kInt:
      return a.integer() == b.integer();
    case Kind::kFloat:
      return false;
    default:
      return a.object() == b.object();
  }
}

bool equals(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) {
    bool ordered = false;
    return compare_numbers(a, b, ordered) == 0 && ordered;
  }
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
      return equal_sequences(budget, a.as<SequenceObject>().items, b.as<SequenceObject>().items);
    case Kind::kDict:
      return equal_dicts(budget, a.as<DictObject>(), b.as<DictObject>());
    case Kind::kRange:
      return equal_ranges(a.as<RangeObject>(), b.as<RangeObject>());
    default:
      return false;
  }
}

bool compare(Budget& budget, Comparison how, const Value& a, const Value& b) {
  if (how == Comparison::kEq) return equals(budget, a, b);
  if (how == Comparison::kNe) return !equals(budget, a, b);
  budget.spend(1);
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) {
    bool ordered = false;
    const int order = compare_numbers(a, b, ordered);
    return ordered && satisfies(how, order);
  }
  if (a.is_string() && b.is_string()) {
    // UTF-8 keeps the order of code points.
    budget.spend_bytes(std::min(a.text().size(), b.text().size()));
    return satisfies(how, a.text().compare(b.text()));
  }
  if (a.kind() != b.kind() || !(a.is(Kind::kList) || a.is(Kind::kTuple))) throw_no_order(how, a, b);
  const auto& left = a.as<SequenceObject>().items;
  const auto& right = b.as<SequenceObject>().items;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!is_same_object(left[i], right[i]) && !equals(budget, left[i], right[i])) {
      return compare(budget, how, left[i], right[i]);
    }
  }
  return satisfies(how, left.size() < right.size() ? -1 : left.size() > right.size());
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  const auto is_item = [&](const Value& other) {
    return is_same_object(other, item) || equals(budget, other, item);
  };
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        throw Fault("'in <string>' requires string as left operand, not " +
                    std::string(python_type_name(item)));
      }
      budget.spend_bytes(container.text().size() + item.text().size());
      return find_text(container.text(), item.text()) != std::string_view::npos;
    case Kind::kDict:
      return container.as<DictObject>().find(budget, item) != nullptr;
    case Kind::kList:
    case Kind::kTuple: {
      const auto& items = container.as<SequenceObject>().items;
      return std::any_of(items.begin(), items.end(), is_item);
    }
    default:
      break;
  }
  if (!is_iterable(container)) {
    throw Fault("argument of type '" + std::string(python_type_name(container)) +
                "' is not iterable");
  }
  const auto iterator = iterate(budget, container);
  for (Value other; iterator->next(other);) {
    if (is_item(other)) return true;
  }
  return false;
}

}  // namespace limpid::jinja
