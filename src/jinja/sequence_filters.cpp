// Filters over sequences: they choose, change, sort and join items.
#include <algorithm>
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

using Values = std::vector<Value>;

// The part of an item that filters look at: attribute="a.b.0" reads names and indices in turn, none
// selects the item itself. `otherwise`, unless none, replaces what is undefined. Texts may be
// compared without regard to case, by their lower case.
class ItemLookup {
 public:
  ItemLookup(Interpreter& interpreter, const Value& attribute, bool ignore_case = false,
             Value otherwise = {})
      : interpreter_(interpreter), ignore_case_(ignore_case), otherwise_(std::move(otherwise)) {
    if (attribute.is(Kind::kNone)) return;
    if (!attribute.is_string()) {
      parts_.push_back(attribute);
      return;
    }
    for (const auto part : split_text(attribute.text(), ".", -1)) {
      const auto index = index_of(part);
      parts_.push_back(index ? Value(*index)
                             : make_string(interpreter.budget(), attribute.traced().part(part)));
    }
  }

  Value operator()(Value value) const {
    for (const auto& part : parts_) {
      interpreter_.budget().spend(1);
      value = interpreter_.get_item(value, part);
      if (value.is_undefined() && !otherwise_.is(Kind::kNone)) value = otherwise_;
    }
    if (!ignore_case_ || !value.is_string()) return value;
    return make_string(interpreter_.budget(), to_lower(value.traced()));
  }

 private:
  Interpreter& interpreter_;
  Values parts_;
  bool ignore_case_;
  Value otherwise_;
};

// A loop knows its length too, though only its attribute does the counting.
Value filter_length(BuiltinCall& call) {
  if (call.self.is(Kind::kLoop)) return call.interpreter.get_attribute(call.self, "length");
  const auto length = length_of(call.self);
  if (!length) fail("object of type '{}' has no len()", python_type_name(call.self));
  return Value(*length);
}

// Takes only the first item of a generator; the others stay in it.
Value filter_first(BuiltinCall& call) {
  Value first;
  if (call.self.is(Kind::kGenerator)) {
    if (call.self.as<GeneratorObject>().next(first)) return first;
  } else if (const Values items = to_vector(call.budget, call.self); !items.empty()) {
    return items.front();
  }
  return call.interpreter.undefined("no first item, sequence was empty");
}

// The items from the last to the first; a generator has no reversed().
Values reversed(BuiltinCall& call) {
  if (!length_of(call.self)) fail("'{}' object is not reversible", python_type_name(call.self));
  Values items = to_vector(call.budget, call.self);
  std::ranges::reverse(items);
  return items;
}

Value filter_last(BuiltinCall& call) {
  const Values items = reversed(call);
  return items.empty() ? call.interpreter.undefined("no last item, sequence was empty")
                       : items.front();
}

// list() of a text is its characters, of a dict its keys.
Value filter_list(BuiltinCall& call) {
  return make_list(call.budget, to_vector(call.budget, call.self));
}

// Like the method, but undefined has no pairs and is not an error.
Value filter_items(BuiltinCall& call) {
  if (call.self.is_undefined()) return make_generator(call.budget, {});
  if (!call.self.is(Kind::kDict)) fail("can only get item pairs from a mapping");
  const Value items = call.interpreter.call(call.interpreter.get_attribute(call.self, "items"), {});
  return make_generator(call.budget, to_vector(call.budget, items));
}

// Items become text as str() makes it; a separator has the origins of its own bytes.
Value filter_join(BuiltinCall& call) {
  Budget& budget = call.budget;
  const TracedText separator = call.has(0) ? to_str(budget, call[0]) : TracedText();
  const ItemLookup lookup(call.interpreter, call.value_or(1, Value()));
  TracedText out;
  bool is_first = true;
  for (const auto& item : to_vector(budget, call.self)) {
    if (!std::exchange(is_first, false)) append_checked(budget, out, separator);
    append_str(budget, out, lookup(item));
  }
  return make_string(budget, std::move(out));
}

// The result is a text for a text, a generator for a sequence, and a list for a generator (which
// Python cannot reverse).
Value filter_reverse(BuiltinCall& call) {
  if (call.self.is_string()) {
    return slice(call.budget, call.self, Value(), Value(), Value(int64_t{-1}));
  }
  if (!call.self.is(Kind::kGenerator)) return make_generator(call.budget, reversed(call));
  Values items = to_vector(call.budget, call.self);
  std::ranges::reverse(items);
  return make_list(call.budget, std::move(items));
}

// sorted(): stable; throws Fault where Python has no order. Each value comes with its key.
Value sorted(BuiltinCall& call, std::vector<std::pair<Value, Value>> keyed, bool descending) {
  // Merging never reads outside the range, whatever an inconsistent order (NaN) answers.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return compare(call.budget, descending ? Comparison::kGt : Comparison::kLt, a.first, b.first);
  });
  Values values;
  for (auto& [key, value] : keyed) values.push_back(std::move(value));
  return make_list(call.budget, std::move(values));
}

// Upper and lower case are alike unless case_sensitive is given; an attribute sorts by a part of
// the items.
Value filter_sort(BuiltinCall& call) {
  const Value attribute = call.value_or(2, Value());
  if (attribute.is_string() && attribute.text().find(',') != std::string_view::npos) {
    refuse("the filter 'sort' with several attributes");
  }
  const ItemLookup lookup(call.interpreter, attribute, !call.truth(1, false));
  std::vector<std::pair<Value, Value>> keyed;
  // As in Jinja, a key is a list, in which equal items need no order: none beside none is fine.
  for (const auto& item : to_vector(call.budget, call.self))
    keyed.emplace_back(make_list(call.budget, {lookup(item)}), item);
  return sorted(call, std::move(keyed), call.truth(0, false));
}

// Pairs of key and value, sorted by key or by value. Many templates print tools so.
Value filter_dictsort(BuiltinCall& call) {
  require_defined(call.self);
  if (!call.self.is(Kind::kDict)) fail("dictsort needs a mapping");
  const ItemLookup lookup(call.interpreter, Value(), !call.truth(0, false));
  const std::string by = call.has(1) ? to_str(call.budget, call[1]).bytes() : "key";
  if (by != "key" && by != "value") fail("you can only sort by either \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : call.self.as<DictObject>().entries) {
    keyed.emplace_back(lookup(by == "key" ? key : value), make_tuple(call.budget, {key, value}));
  }
  return sorted(call, std::move(keyed), call.truth(2, false));
}

// min and max: the first of the best items.
template <Comparison better>
Value extreme(BuiltinCall& call) {
  const ItemLookup lookup(call.interpreter, call.value_or(1, Value()), !call.truth(0, false));
  std::optional<Value> best;
  Value best_key;
  for (const auto& item : to_vector(call.budget, call.self)) {
    Value key = lookup(item);
    if (best && !compare(call.budget, better, key, best_key)) continue;
    best = item;
    best_key = std::move(key);
  }
  return best ? *best : call.interpreter.undefined("no aggregated item, sequence was empty");
}

// The first item of each key, in their order. Keys are found by hash, so n items take about n
// steps.
Value filter_unique(BuiltinCall& call) {
  const ItemLookup lookup(call.interpreter, call.value_or(1, Value()), !call.truth(0, false));
  std::unordered_multimap<size_t, Value> seen;
  Values kept;
  for (const auto& item : to_vector(call.budget, call.self)) {
    const Value key = lookup(item);
    const auto [first, last] = seen.equal_range(hash_of(key));
    const bool is_known = std::any_of(
        first, last, [&](const auto& row) { return equals(call.budget, row.second, key); });
    if (is_known) continue;
    call.budget.check_room(kept.size() * 4 * sizeof(Value));
    seen.emplace(hash_of(key), key);
    kept.push_back(item);
  }
  return make_generator(call.budget, std::move(kept));
}

// Takes the name of a filter or a test from the front of `arguments`; what follows are its own.
// Names of filters and tests are values here, so a wrong one is found only when it runs.
std::string take_name(Arguments& arguments) {
  if (!arguments.positional[0].is_string()) fail("the name of a filter or test must be a string");
  std::string name(arguments.positional[0].text());
  arguments.positional.erase(arguments.positional.begin());
  return name;
}

// map('upper'), map('replace', 'a', 'b'), map(attribute='name', default='')
Values mapped_items(BuiltinCall& call) {
  Arguments rest = call.arguments;
  std::optional<ItemLookup> lookup;
  std::string filter;
  if (!rest.positional.empty()) {
    filter = take_name(rest);
  } else {
    constexpr Builtin kByAttribute = {"map", nullptr, {"attribute", "default"}, 1};
    const BuiltinCall named(call.interpreter, kByAttribute, call.self, call.arguments);
    lookup.emplace(call.interpreter, named[0], false, named.value_or(1, Value()));
  }
  Values results;
  for (const auto& item : to_vector(call.budget, call.self)) {
    call.budget.spend_step();
    results.push_back(lookup ? (*lookup)(item) : call.interpreter.call_filter(filter, item, rest));
  }
  return results;
}

// select('string'), selectattr('role', 'equalto', 'user'), and the same reversed. Without a test,
// what counts is whether the item is true.
template <bool by_attribute, bool wanted>
Values selected_items(BuiltinCall& call) {
  Arguments rest = call.arguments;
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) fail("missing parameter for attribute name");
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  const std::string test = rest.positional.empty() ? "" : take_name(rest);
  const ItemLookup lookup(call.interpreter, attribute);
  Values chosen;
  for (const auto& item : to_vector(call.budget, call.self)) {
    call.budget.spend_step();
    const Value tested = lookup(item);
    const bool holds =
        test.empty() ? is_true(tested) : call.interpreter.call_test(test, tested, rest);
    if (holds == wanted) chosen.push_back(item);
  }
  return chosen;
}

// A filter that returns a generator; the generator is empty for an operand that is false.
template <Values (*compute)(BuiltinCall&)>
Value lazily(BuiltinCall& call) {
  int depth = call.self.depth();
  for (const auto& value : call.arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value] : call.arguments.named) depth = std::max(depth, value.depth());
  return make_generator(
      call.budget,
      [&interpreter = call.interpreter, self = call.self, arguments = call.arguments] {
        constexpr Builtin kAnything = {"", nullptr, {}, 0, Builtin::Passing::kAny};
        BuiltinCall later(interpreter, kAnything, self, arguments);
        return is_true(self) ? compute(later) : Values();
      },
      depth);
}

constexpr auto kAny = Builtin::Passing::kAny;
constexpr Builtin kTable[] = {
    {"count", filter_length},
    {"dictsort", filter_dictsort, {"case_sensitive", "by", "reverse"}},
    {"first", filter_first},
    {"items", filter_items},
    {"join", filter_join, {"d", "attribute"}},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", lazily<mapped_items>, {}, 0, kAny},
    {"max", extreme<Comparison::kGt>, {"case_sensitive", "attribute"}},
    {"min", extreme<Comparison::kLt>, {"case_sensitive", "attribute"}},
    {"reject", lazily<selected_items<false, false>>, {}, 0, kAny},
    {"rejectattr", lazily<selected_items<true, false>>, {}, 0, kAny},
    {"reverse", filter_reverse},
    {"select", lazily<selected_items<false, true>>, {}, 0, kAny},
    {"selectattr", lazily<selected_items<true, true>>, {}, 0, kAny},
    {"sort", filter_sort, {"reverse", "case_sensitive", "attribute"}},
    {"unique", filter_unique, {"case_sensitive", "attribute"}},
};

}  // namespace

const std::span<const Builtin> kSequenceFilters = kTable;

}  // namespace limpid::jinja
