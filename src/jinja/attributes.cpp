// value.name and value[key].
//
// The two differ in what comes first for a dict: d.items is the method, d['items'] the entry; each
// then tries the other. Nothing that begins with an underscore is an attribute here, so a template
// cannot reach for the insides of Python that a sandbox would have to guard. What does not exist is
// undefined, and only using it is an error.
#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

// What changes a list or a dict exists in Python, but the sandbox refuses to call it.
// Using such a method is an error that says so, where an unknown attribute would only be undefined.
bool is_mutator(const Value& of, std::string_view name) {
  constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kOfLists[] = {"append", "clear", "pop",    "reverse",
                                           "insert", "sort",  "extend", "remove"};
  const auto has = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (of.is(Kind::kDict) && has(kOfDicts)) || (of.is(Kind::kList) && has(kOfLists));
}

// How messages name a value: 'dict object'.
std::string described(const Value& of) {
  if (of.is(Kind::kNone)) return "'None'";
  return fmt::format("'{} object'", python_type_name(of));
}

}  // namespace

// The attributes of `loop`. Those that look ahead ask for the next item; the others are known.
std::optional<Value> Interpreter::loop_attribute(LoopObject& loop, std::string_view name) {
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.peek() == nullptr);
  if (name == "length") return Value(loop.length());
  if (name == "revindex") return Value(loop.length() - loop.index0);
  if (name == "revindex0") return Value(loop.length() - loop.index0 - 1);
  if (name == "depth") return Value(int64_t{1});  // no loop is recursive
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") {
    return loop.index0 == 0 ? undefined("there is no previous item") : loop.previous;
  }
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next == nullptr ? undefined("there is no next item") : *next;
  }
  return std::nullopt;
}

// getattr(): nothing where Python has no such attribute.
std::optional<Value> Interpreter::python_attribute(const Value& of, std::string_view name) {
  if (of.is(Kind::kNamespace)) {
    const auto* known = of.as<NamespaceObject>().attributes.find(name);
    return known == nullptr ? std::nullopt : std::optional<Value>(known->value);
  }
  if (of.is(Kind::kLoop)) {
    if (auto value = loop_attribute(of.as<LoopObject>(), name)) return value;
  }
  if (const Builtin* method = find_method(of, name)) {
    return Value(Kind::kFunction, std::make_shared<FunctionObject>(&budget_, *method, of));
  }
  if (!is_mutator(of, name)) return std::nullopt;
  return undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe", name, python_type_name(of)));
}

Value Interpreter::get_attribute(const Value& of, std::string_view name) {
  require_defined(of);
  if (auto value = python_attribute(of, name)) return *std::move(value);
  if (of.is(Kind::kDict)) {
    if (const Value* item = of.as<DictObject>().find(name)) return *item;
  }
  return undefined(fmt::format("{} has no attribute '{}'", described(of), name));
}

Value Interpreter::get_item(const Value& of, const Value& key) {
  require_defined(of);
  if (of.is(Kind::kDict)) {
    const bool is_hashable = !key.is(Kind::kList) && !key.is(Kind::kDict);
    const Value* item = is_hashable ? of.as<DictObject>().find(budget_, key) : nullptr;
    if (item != nullptr) return *item;
  } else if (key.is_integral() && !of.is(Kind::kDictView)) {
    const int64_t length = length_of(of).value_or(0);
    const int64_t index = key.integer() + (key.integer() < 0 ? length : 0);
    if (index >= 0 && index < length && of.is_string()) {
      const Value end = Value(index + 1);
      return slice(budget_, of, Value(index), end, Value());
    }
    if (index >= 0 && index < length)
      return of.as<SequenceObject>().items[static_cast<size_t>(index)];
  }
  if (!key.is_string()) {
    return undefined(
        fmt::format("{} has no element {}", described(of), repr(budget_, key).bytes()));
  }
  if (auto value = python_attribute(of, key.text())) return *std::move(value);
  return undefined(fmt::format("{} has no attribute '{}'", described(of), key.text()));
}

}  // namespace limpid::jinja
