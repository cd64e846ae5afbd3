// Expressions -> values.
#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

// Python's methods that change a list or a dict, which the sandbox of transformers refuses to call.
// Using one is an error that says so; an unknown attribute would only be undefined.
bool is_mutator(const Value& of, std::string_view name) {
  constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kOfLists[] = {"append", "clear", "pop",    "reverse",
                                           "insert", "sort",  "extend", "remove"};
  const auto has = [name](const auto& names) {
    return std::ranges::find(names, name) != std::end(names);
  };
  return (of.is(Kind::kDict) && has(kOfDicts)) || (of.is(Kind::kList) && has(kOfLists));
}

// How messages name a value: 'dict object'.
std::string described(const Value& of) {
  if (of.is(Kind::kNone)) return "'None'";
  return fmt::format("'{} object'", python_type_name(of));
}

}  // namespace

// A name may be as long as the template, so each comparison pays for it.
Value Interpreter::look_up(const std::string& name, const ScopePtr& scope) {
  for (const Scope* where = scope.get(); where != nullptr; where = where->parent.get()) {
    budget_.spend_bytes(name.size());
    if (const auto found = where->slots.find(name); found != where->slots.end()) {
      return found->second ? *found->second : undefined("'" + name + "' is undefined");
    }
  }
  if (const auto* global = find_global(name)) {
    return {Kind::kFunction, std::make_shared<FunctionObject>(&budget_, *global, Value())};
  }
  return undefined("'" + name + "' is undefined");
}

// The value of a node of each kind. The parts of a node are evaluated in the order of the
// source, which matters for messages only: expressions change nothing.
struct Interpreter::Evaluation {
  Interpreter& in;
  const ScopePtr& scope;

  Value eval(const Expression& expression) const { return in.eval(expression, scope); }
  std::vector<Value> eval_all(const std::vector<ExpressionPtr>& items) const {
    std::vector<Value> values;
    values.reserve(items.size());
    for (const auto& item : items) values.push_back(eval(*item));
    return values;
  }

  Value operator()(const Literal& node) const { return node.value; }
  Value operator()(const Name& node) const { return in.look_up(node.name, scope); }
  Value operator()(const NamespaceAttribute&) const {
    fail("a namespace attribute is only a target of set");
  }
  // (a, b) or [a, b].
  Value operator()(const SequenceDisplay& node) const {
    auto items = eval_all(node.items);
    return node.is_tuple ? make_tuple(in.budget_, std::move(items))
                         : make_list(in.budget_, std::move(items));
  }
  Value operator()(const DictDisplay& node) const {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(node.entries.size());
    for (const auto& [key, value] : node.entries) {
      Value name = eval(*key);
      entries.emplace_back(std::move(name), eval(*value));
    }
    return make_dict(in.budget_, std::move(entries));
  }
  Value operator()(const Not& node) const { return Value(!is_true(eval(*node.operand))); }
  Value operator()(const Negate& node) const { return negate(eval(*node.operand)); }
  Value operator()(const Binary& node) const {
    const Value left = eval(*node.left);
    return binary(in.budget_, node.op, left, eval(*node.right));
  }
  // The value is one of the operands, as in Python: none or 'x' is 'x'. The right one may not
  // be needed.
  Value operator()(const Logic& node) const {
    Value left = eval(*node.left);
    return is_true(left) == node.is_and ? eval(*node.right) : left;
  }
  // `in` and `not in` are comparisons too.
  Value operator()(const Compare& node) const {
    const Value left = eval(*node.left);
    return Value(compare(in.budget_, node.how, left, eval(*node.right)));
  }
  // Only one of the two is evaluated.
  Value operator()(const Conditional& node) const {
    if (is_true(eval(*node.condition))) return eval(*node.yes);
    if (node.no) return eval(*node.no);
    return in.undefined(
        "the inline if-expression evaluated to false and no else section was defined");
  }
  Value operator()(const Attribute& node) const {
    return in.get_attribute(eval(*node.operand), node.name);
  }
  Value operator()(const Subscript& node) const {
    const Value of = eval(*node.operand);
    return in.get_item(of, eval(*node.index));
  }
  Value operator()(const Slice& node) const {
    const Value of = eval(*node.operand);
    const auto bound = [&](const ExpressionPtr& e) { return e ? eval(*e) : Value(); };
    const Value start = bound(node.start);
    const Value stop = bound(node.stop);
    return slice(in.budget_, of, start, stop, bound(node.step));
  }
  Value operator()(const Call& node) const {
    const Value callee = eval(*node.operand);
    return in.call(callee, in.eval_arguments(node.arguments, scope));
  }
  // A name is looked up when the filter runs: inside of `if` it may be unknown until then.
  Value operator()(const Filter& node) const {
    const Value operand = node.operand ? eval(*node.operand) : *in.block_text_;
    return in.call_filter(node.name, operand, in.eval_arguments(node.arguments, scope));
  }
  Value operator()(const Test& node) const {
    const Value operand = eval(*node.operand);
    return Value(in.call_test(node.name, operand, in.eval_arguments(node.arguments, scope)));
  }
};

// at_ is set again at the end, so that an error of an operator is reported at the start of its last
// operand, not somewhere inside that operand.
Value Interpreter::eval(const Expression& expression, const ScopePtr& scope) {
  const Level level = deeper();
  budget_.spend(1);
  at_ = expression.at;
  Value value = std::visit(Evaluation{*this, scope}, expression.node);
  at_ = expression.at;
  return value;
}

// From left to right, *args last.
Arguments Interpreter::eval_arguments(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments values;
  values.positional = Evaluation{*this, scope}.eval_all(arguments.positional);
  for (const auto& [name, value] : arguments.named) {
    values.named.emplace_back(name, eval(*value, scope));
  }
  if (arguments.more_positional) {
    const Value more = eval(*arguments.more_positional, scope);
    auto items = to_vector(budget_, more);
    std::move(items.begin(), items.end(), std::back_inserter(values.positional));
  }
  return values;
}

Value Interpreter::run_builtin(const Builtin& builtin, const Value& self,
                               const Arguments& arguments) {
  // A builtin may read all of the texts that it is called with, whatever it returns.
  if (self.is_string()) budget_.spend_bytes(self.text().size());
  for (const auto& value : arguments.positional) {
    if (value.is_string()) budget_.spend_bytes(value.text().size());
  }
  BuiltinCall call(*this, builtin, self, arguments);
  return builtin.run(call);
}

// Only macros and builtins can be called.
Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (callee.is(Kind::kMacro)) return call_macro(callee.as<MacroObject>(), arguments);
  if (callee.is(Kind::kFunction)) {
    const auto& function = callee.as<FunctionObject>();
    return run_builtin(function.builtin, function.self, arguments);
  }
  require_defined(callee);
  fail("'{}' object is not callable", python_type_name(callee));
}

Value Interpreter::call_filter(std::string_view name, const Value& operand,
                               const Arguments& arguments) {
  const auto* filter = find_filter(name);
  if (filter == nullptr) refuse("filter '{}'", name);
  return run_builtin(*filter, operand, arguments);
}

// A test may return any value; only its truth counts.
bool Interpreter::call_test(std::string_view name, const Value& operand,
                            const Arguments& arguments) {
  const auto* test = find_test(name);
  if (test == nullptr) refuse("test '{}'", name);
  return is_true(run_builtin(*test, operand, arguments));
}

// ---- value.name and value[key] ------------------------------------------------------------------
//
// The two differ in what comes first for a dict: d.items is the method, d['items'] the entry; each
// then tries the other. Nothing that begins with an underscore is an attribute here, so a template
// cannot reach for the insides of Python that a sandbox would have to guard. What does not exist is
// undefined, and only using it is an error.

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
    return loop.index0 == 0 ? undefined("the first item has no previous item") : loop.previous;
  }
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next == nullptr ? undefined("the last item has no next item") : *next;
  }
  return std::nullopt;
}

// getattr(): nothing where Python has no such attribute.
std::optional<Value> Interpreter::python_attribute(const Value& of, std::string_view name) {
  if (of.is(Kind::kNamespace)) {
    const auto& attributes = of.as<NamespaceObject>().attributes;
    const auto known = attributes.find(name);
    return known == attributes.end() ? std::nullopt : std::optional<Value>(known->second);
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
    if (index >= 0 && index < length) {
      if (of.is_string()) return slice(budget_, of, Value(index), Value(index + 1), Value());
      return of.as<SequenceObject>().items[static_cast<size_t>(index)];
    }
  }
  if (!key.is_string()) {
    return undefined(
        fmt::format("{} has no element {}", described(of), repr(budget_, key).bytes()));
  }
  if (auto value = python_attribute(of, key.text())) return *std::move(value);
  return undefined(fmt::format("{} has no attribute '{}'", described(of), key.text()));
}

}  // namespace limpid::jinja
