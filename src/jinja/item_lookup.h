// The keys that filters sort, group and select by: attribute="a.b.0", upper and lower case alike.
#pragma once

#include <string>
#include <vector>

#include "jinja/builtins.h"

namespace limpid::jinja {

class ItemLookup {
 public:
  // `attribute` none: the item itself. Parts between dots are names, or indices when they are
  // digits.
  ItemLookup(Interpreter& interpreter, const Value& attribute, bool ignore_case = false,
             const Value& otherwise = Value());
  Value operator()(const Value& item) const;

 private:
  Interpreter& interpreter_;
  std::vector<Value> parts_;
  bool ignore_case_;
  Value otherwise_;  // instead of an undefined attribute, unless none
};

// sorted(…, reverse): stable; throws Fault where Python has no order.
void sort_by_keys(Budget& budget, std::vector<std::pair<Value, Value>>& keyed, bool reverse);

}  // namespace limpid::jinja
