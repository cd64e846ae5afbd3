// Methods of dict, list, tuple and range that change nothing.
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

template <DictViewObject::Part part>
Value view(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return {Kind::kDictView, std::make_shared<DictViewObject>(&interpreter.budget(), self, part)};
}

Value dict_get(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) throw Fault("dict.get() takes no keyword arguments");
  const Parameters parameters(arguments, {"key", "default"}, 1);
  const Value* found = self.as<DictObject>().find(interpreter.budget(), parameters[0]);
  if (found != nullptr) return *found;
  return parameters.has(1) ? parameters[1] : Value();
}

Value copy(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return self;  // nothing can change it
}

Value dict_fromkeys(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const Parameters parameters(arguments, {"iterable", "value"}, 1);
  std::vector<std::pair<Value, Value>> entries;
  for (auto& key : to_vector(interpreter.budget(), parameters[0])) {
    entries.emplace_back(std::move(key), parameters.has(1) ? parameters[1] : Value());
  }
  return make_dict(interpreter.budget(), std::move(entries));
}

Value sequence_count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"value"}, 1);
  int64_t count = 0;
  for (const auto& item : to_vector(interpreter.budget(), self)) {
    count += equals(interpreter.budget(), item, parameters[0]);
  }
  return Value(count);
}

Value sequence_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"value", "start", "stop"}, 1);
  const auto items = to_vector(interpreter.budget(), self);
  const auto length = static_cast<int64_t>(items.size());
  const auto bound = [&](size_t i, int64_t otherwise) {
    const int64_t index = parameters.integer(i, otherwise);
    return index < 0 ? std::max<int64_t>(index + length, 0) : std::min(index, length);
  };
  for (int64_t i = bound(1, 0); i < bound(2, length); ++i) {
    if (equals(interpreter.budget(), items[static_cast<size_t>(i)], parameters[0])) return Value(i);
  }
  throw Fault(repr(interpreter.budget(), parameters[0]).bytes() + " is not in the sequence");
}

constexpr NamedBuiltin kDictMethods[] = {
    {"copy", copy},
    {"fromkeys", dict_fromkeys},
    {"get", dict_get},
    {"items", view<DictViewObject::Part::kItems>},
    {"keys", view<DictViewObject::Part::kKeys>},
    {"values", view<DictViewObject::Part::kValues>},
};
constexpr NamedBuiltin kSequenceMethods[] = {
    {"copy", copy}, {"count", sequence_count}, {"index", sequence_index}};

}  // namespace

const NamedBuiltin* find_dict_method(std::string_view name) {
  return find_builtin(kDictMethods, name);
}
const NamedBuiltin* find_sequence_method(std::string_view name) {
  return find_builtin(kSequenceMethods, name);
}

}  // namespace limpid::jinja
