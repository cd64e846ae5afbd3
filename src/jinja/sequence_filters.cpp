// Filters that take sequences apart, sort and join them.
#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/item_lookup.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

Value filter_length(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  if (self.is(Kind::kLoop)) return Value(self.as<LoopObject>().length(interpreter.budget()));
  const auto length = length_of(self);
  if (!length) {
    throw Fault("object of type '" + std::string(python_type_name(self)) + "' has no len()");
  }
  return Value(*length);
}

Value filter_first(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Value item;
  if (iterate(interpreter.budget(), self)->next(item)) return item;
  return interpreter.undefined("no first item, sequence was empty");
}

Value filter_last(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const auto items = reversed_items(interpreter.budget(), self);
  if (!items) {
    throw Fault("'" + std::string(python_type_name(self)) + "' object is not reversible");
  }
  return items->empty() ? interpreter.undefined("no last item, sequence was empty")
                        : items->front();
}

Value filter_list(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return make_list(interpreter.budget(), to_vector(interpreter.budget(), self));
}

Value filter_items(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  if (self.is_undefined()) return make_iterator(budget, {});
  if (!self.is(Kind::kDict)) throw Fault("can only get item pairs from a mapping");
  const Value view(Kind::kDictView,
                   std::make_shared<DictViewObject>(&budget, self, DictViewObject::Part::kItems));
  return {Kind::kIterator, iterate(budget, view)};
}

Value filter_join(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"d", "attribute"});
  Budget& budget = interpreter.budget();
  const TracedText between = parameters.has(0) ? to_str(budget, parameters[0]) : TracedText();
  const ItemLookup lookup(interpreter, parameters.has(1) ? parameters[1] : Value());
  TracedText out;
  bool first = true;
  const auto iterator = iterate(budget, self);
  for (Value item; iterator->next(item);) {
    if (!first) append_checked(budget, out, between);
    first = false;
    append_str(budget, out, lookup(item));
  }
  return make_string(budget, std::move(out));
}

Value filter_reverse(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  if (self.is_string()) {
    const std::string_view text = self.text();
    TracedText out;
    for (size_t end = text.size(); end > 0;) {
      const size_t begin = previous_code_point(text, end);
      append_checked(budget, out, self.traced().part(text.substr(begin, end - begin)));
      end = begin;
    }
    return make_string(budget, std::move(out), self.as<StringObject>().is_markup);
  }
  if (auto items = reversed_items(budget, self)) return make_iterator(budget, std::move(*items));
  auto items = to_vector(budget, self);
  std::reverse(items.begin(), items.end());
  return make_list(budget, std::move(items));
}

// The key of sort: a list, for attributes between commas.
Value sort_key(Budget& budget, const std::vector<ItemLookup>& lookups, const Value& item) {
  std::vector<Value> key;
  key.reserve(lookups.size());
  for (const auto& lookup : lookups) key.push_back(lookup(item));
  return make_list(budget, std::move(key));
}

Value values_of(Budget& budget, std::vector<std::pair<Value, Value>>& keyed) {
  std::vector<Value> values;
  values.reserve(keyed.size());
  for (auto& [key, value] : keyed) values.push_back(std::move(value));
  return make_list(budget, std::move(values));
}

Value filter_sort(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"reverse", "case_sensitive", "attribute"});
  Budget& budget = interpreter.budget();
  const bool ignore_case = !parameters.truth(1, false);
  const Value attribute = parameters.has(2) ? parameters[2] : Value();
  std::vector<ItemLookup> lookups;
  if (attribute.is_string()) {
    for (const auto name : split_text(attribute.text(), ",", -1)) {
      lookups.emplace_back(interpreter, make_string(budget, attribute.traced().part(name)),
                           ignore_case);
    }
  } else {
    lookups.emplace_back(interpreter, attribute, ignore_case);
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (auto& item : to_vector(budget, self)) {
    Value key = sort_key(budget, lookups, item);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  sort_by_keys(budget, keyed, parameters.truth(0, false));
  return values_of(budget, keyed);
}

Value filter_dictsort(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"case_sensitive", "by", "reverse"});
  require_defined(self);
  if (!self.is(Kind::kDict)) throw Fault("dictsort needs a mapping");
  Budget& budget = interpreter.budget();
  const std::string by = parameters.has(1) ? to_str(budget, parameters[1]).bytes() : "key";
  if (by != "key" && by != "value") throw Fault("you can only sort by either \"key\" or \"value\"");
  const ItemLookup lookup(interpreter, Value(), !parameters.truth(0, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    keyed.emplace_back(lookup(by == "key" ? key : value), make_tuple(budget, {key, value}));
  }
  sort_by_keys(budget, keyed, parameters.truth(2, false));
  return values_of(budget, keyed);
}

template <Comparison better>
Value extreme(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"case_sensitive", "attribute"});
  Budget& budget = interpreter.budget();
  const ItemLookup lookup(interpreter, parameters.has(1) ? parameters[1] : Value(),
                          !parameters.truth(0, false));
  const auto iterator = iterate(budget, self);
  Value best;
  if (!iterator->next(best)) return interpreter.undefined("no aggregated item, sequence was empty");
  Value best_key = lookup(best);
  for (Value item; iterator->next(item);) {
    Value key = lookup(item);
    if (compare(budget, better, key, best_key)) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best;
}

Value filter_sum(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"attribute", "start"});
  Budget& budget = interpreter.budget();
  const ItemLookup lookup(interpreter, parameters.has(0) ? parameters[0] : Value());
  Value total = parameters.has(1) ? parameters[1] : Value(int64_t{0});
  if (total.is_string()) throw Fault("sum() can't sum strings [use ''.join(seq) instead]");
  const auto iterator = iterate(budget, self);
  for (Value item; iterator->next(item);) {
    total = binary(budget, BinaryOperator::kAdd, total, lookup(item));
  }
  return total;
}

Value filter_unique(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"case_sensitive", "attribute"});
  Budget& budget = interpreter.budget();
  const ItemLookup lookup(interpreter, parameters.has(1) ? parameters[1] : Value(),
                          !parameters.truth(0, false));
  std::unordered_multimap<size_t, Value> seen;
  std::vector<Value> kept;
  const auto iterator = iterate(budget, self);
  for (Value item; iterator->next(item);) {
    Value key = lookup(item);
    const size_t hash = hash_of(key);
    const auto [first, last] = seen.equal_range(hash);
    const bool known =
        std::any_of(first, last, [&](const auto& row) { return equals(budget, row.second, key); });
    if (known) continue;
    budget.check_room(kept.size() * 4 * sizeof(Value));
    seen.emplace(hash, std::move(key));
    kept.push_back(std::move(item));
  }
  return make_iterator(budget, std::move(kept));
}

Value filter_groupby(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"attribute", "default", "case_sensitive"}, 1);
  Budget& budget = interpreter.budget();
  const Value otherwise = parameters.has(1) ? parameters[1] : Value();
  const bool ignore_case = !parameters.truth(2, false);
  const ItemLookup lookup(interpreter, parameters[0], ignore_case, otherwise);
  const ItemLookup exact(interpreter, parameters[0], false, otherwise);
  std::vector<std::pair<Value, Value>> keyed;
  for (auto& item : to_vector(budget, self)) {
    Value key = lookup(item);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  sort_by_keys(budget, keyed, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    std::vector<Value> members;
    while (end < keyed.size() && equals(budget, keyed[end].first, keyed[begin].first)) {
      members.push_back(keyed[end++].second);
    }
    if (end == begin) members.push_back(keyed[end++].second);  // NaN equals nothing
    Value grouper = exact(members[0]);
    std::vector<Value> parts = {std::move(grouper), make_list(budget, std::move(members))};
    groups.emplace_back(Kind::kTuple, std::make_shared<GroupObject>(&budget, std::move(parts)));
    begin = end;
  }
  return make_list(budget, std::move(groups));
}

Value filter_batch(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"linecount", "fill_with"}, 1);
  Budget& budget = interpreter.budget();
  const int64_t size = parameters.integer(0, 1);
  const Value fill = parameters.has(1) ? parameters[1] : Value();
  std::vector<Value> rows;
  std::vector<Value> row;
  for (auto& item : to_vector(budget, self)) {
    if (static_cast<int64_t>(row.size()) == size)
      rows.push_back(make_list(budget, std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    if (!fill.is(Kind::kNone) && static_cast<int64_t>(row.size()) < size) {
      budget.check_room(static_cast<size_t>(size) * sizeof(Value));
      row.resize(static_cast<size_t>(size), fill);
    }
    rows.push_back(make_list(budget, std::move(row)));
  }
  return make_iterator(budget, std::move(rows));
}

Value filter_slice(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"slices", "fill_with"}, 1);
  Budget& budget = interpreter.budget();
  const auto items = to_vector(budget, self);
  const int64_t n_slices = parameters.integer(0, 1);
  if (n_slices == 0) throw Fault("integer division or modulo by zero");
  if (n_slices < 0) return make_iterator(budget, {});
  const auto length = static_cast<int64_t>(items.size());
  const int64_t each = length / n_slices;
  const int64_t with_extra = length % n_slices;
  std::vector<Value> slices;
  auto begin = items.begin();
  for (int64_t i = 0; i < n_slices; ++i) {
    budget.spend(1);
    const auto end = begin + each + (i < with_extra ? 1 : 0);
    std::vector<Value> part(begin, end);
    if (parameters.has(1) && !parameters[1].is(Kind::kNone) && i >= with_extra) {
      part.push_back(parameters[1]);
    }
    slices.push_back(make_list(budget, std::move(part)));
    begin = end;
  }
  return make_iterator(budget, std::move(slices));
}

constexpr NamedBuiltin kFilters[] = {
    {"batch", filter_batch},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"max", extreme<Comparison::kGt>},
    {"min", extreme<Comparison::kLt>},
    {"reverse", filter_reverse},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

}  // namespace

const NamedBuiltin* find_sequence_filter(std::string_view name) {
  return find_builtin(kFilters, name);
}

}  // namespace limpid::jinja
