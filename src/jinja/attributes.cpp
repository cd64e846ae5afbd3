// value.name and value[key], as the sandboxed environment resolves them.
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// What changes a list or a dict exists in Python, but the sandbox refuses to call it.
bool is_mutator(const Value& of, std::string_view name) {
  constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kOfLists[] = {"append", "clear", "pop",    "reverse",
                                           "insert", "sort",  "extend", "remove"};
  const auto has = [name](const auto& names) {
    for (const auto& other : names) {
      if (other == name) return true;
    }
    return false;
  };
  return (of.is(Kind::kDict) && has(kOfDicts)) || (of.is(Kind::kList) && has(kOfLists));
}

std::string described(const Value& of) {
  if (of.is(Kind::kNone)) return "'None'";
  return "'" + std::string(python_type_name(of)) + " object'";
}

}  // namespace

Value Interpreter::method_of(const Value& of, std::string_view name, const NamedBuiltin* method) {
  (void)name;
  return {Kind::kFunction,
          std::make_shared<FunctionObject>(&budget_, method->name, method->function, of)};
}

Value Interpreter::loop_attribute(const Value& of, std::string_view name, bool& found) {
  auto& loop = of.as<LoopObject>();
  const auto length = [&] { return loop.length(budget_); };
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.peek() == nullptr);
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - loop.index0);
  if (name == "revindex0") return Value(length() - loop.index0 - 1);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "previtem") {
    return loop.index0 == 0 ? undefined("there is no previous item") : loop.previous;
  }
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next == nullptr ? undefined("there is no next item") : *next;
  }
  if (const auto* method = find_loop_method(name)) return method_of(of, name, method);
  found = false;
  return {};
}

// getattr(); `found` false: Python has no such attribute.
Value Interpreter::attribute_or_null(const Value& of, std::string_view name, bool& found) {
  found = true;
  const NamedBuiltin* method = nullptr;
  switch (of.kind()) {
    case Kind::kString:
      method = find_string_method(name);
      break;
    case Kind::kDict:
      method = find_dict_method(name);
      break;
    case Kind::kList:
    case Kind::kTuple:
      if (const auto* group = dynamic_cast<GroupObject*>(of.object())) {
        if (name == "grouper") return group->items[0];
        if (name == "list") return group->items[1];
      }
      method = find_sequence_method(name);
      break;
    case Kind::kRange: {
      const auto& range = of.as<RangeObject>();
      if (name == "start") return Value(range.start);
      if (name == "stop") return Value(range.stop);
      if (name == "step") return Value(range.step);
      method = find_sequence_method(name);
      break;
    }
    case Kind::kNamespace:
      if (const auto* known = of.as<NamespaceObject>().attributes.find(name)) return known->value;
      break;
    case Kind::kLoop:
      return loop_attribute(of, name, found);
    case Kind::kCycler: {
      const auto& cycler = of.as<CyclerObject>();
      if (name == "current") return cycler.items[cycler.position];
      if (name == "pos") return Value(static_cast<int64_t>(cycler.position));
      method = find_cycler_method(name);
      break;
    }
    case Kind::kMacro:
      if (name == "name")
        return make_string(budget_,
                           TracedView(of.as<MacroObject>().definition->name, Origin::kTemplate));
      break;
    default:
      break;
  }
  if (method != nullptr) return method_of(of, name, method);
  if (is_mutator(of, name)) {
    return undefined("access to attribute '" + std::string(name) + "' of '" +
                     std::string(python_type_name(of)) + "' object is unsafe");
  }
  found = false;
  return {};
}

Value Interpreter::get_attribute(const Value& of, std::string_view name) {
  require_defined(of);
  bool found = false;
  Value value = attribute_or_null(of, name, found);
  if (found) return value;
  if (of.is(Kind::kDict)) {
    if (const Value* item = of.as<DictObject>().find(name)) return *item;
  }
  return undefined(described(of) + " has no attribute '" + std::string(name) + "'");
}

Value Interpreter::get_item(const Value& of, const Value& key) {
  require_defined(of);
  if (of.is(Kind::kDict)) {
    const bool hashable = !key.is(Kind::kList) && !key.is(Kind::kDict);
    if (hashable) {
      if (const Value* item = of.as<DictObject>().find(budget_, key)) return *item;
    }
  } else if (key.is_integral()) {
    const auto length = of.is(Kind::kDictView) ? std::nullopt : length_of(of);
    int64_t index = key.integer();
    if (length && index < 0) index += *length;
    if (length && index >= 0 && index < *length) {
      if (of.is(Kind::kRange)) return Value(of.as<RangeObject>().at(index));
      if (!of.is_string()) return of.as<SequenceObject>().items[static_cast<size_t>(index)];
      const std::string_view text = of.text();
      const size_t begin = byte_offset(text, index);
      size_t end = begin;
      next_code_point(text, end);
      budget_.spend_bytes(begin);
      return make_string(budget_, of.traced().part(text.substr(begin, end - begin)));
    }
  }
  if (key.is_string()) {
    bool found = false;
    Value value = attribute_or_null(of, key.text(), found);
    if (found) return value;
    return undefined(described(of) + " has no attribute '" + std::string(key.text()) + "'");
  }
  return undefined(described(of) + " has no element " + repr(budget_, key).bytes());
}

}  // namespace limpid::jinja
