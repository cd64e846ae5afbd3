// Expressions -> values.
#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {

// at_ is set again at the end: an error of an operator is reported where its last operand begins,
// not somewhere inside of that operand.
Value Interpreter::eval(const Expression& expression, const ScopePtr& scope) {
  const Level level(*this);
  budget_.spend(1);
  at_ = expression.at;
  Value value =
      std::visit([&](const auto& node) { return eval_node(node, scope); }, expression.node);
  at_ = expression.at;
  return value;
}

// In the order of the source, which matters for messages only: expressions change nothing.
std::vector<Value> Interpreter::eval_all(const std::vector<ExpressionPtr>& items,
                                         const ScopePtr& scope) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(eval(*item, scope));
  return values;
}

Value Interpreter::eval_node(const Literal& node, const ScopePtr&) { return node.value; }

// A name may be as long as the template, so each comparison pays for it.
Value Interpreter::eval_node(const Name& node, const ScopePtr& scope) {
  for (const Scope* where = scope.get(); where != nullptr; where = where->parent.get()) {
    budget_.spend_bytes(node.name.size());
    if (const auto* slot = where->slots.find(node.name)) {
      return slot->is_missing ? undefined("'" + node.name + "' is undefined") : slot->value;
    }
  }
  if (const auto* global = find_global(node.name)) {
    return {Kind::kFunction, std::make_shared<FunctionObject>(&budget_, *global, Value())};
  }
  return undefined("'" + node.name + "' is undefined");
}

Value Interpreter::eval_node(const NamespaceAttribute&, const ScopePtr&) {
  fail("a namespace attribute is only a target of set");
}

// (a, b) or [a, b].
Value Interpreter::eval_node(const SequenceDisplay& node, const ScopePtr& scope) {
  auto items = eval_all(node.items, scope);
  return node.is_tuple ? make_tuple(budget_, std::move(items))
                       : make_list(budget_, std::move(items));
}

Value Interpreter::eval_node(const DictDisplay& node, const ScopePtr& scope) {
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(node.entries.size());
  for (const auto& [key, value] : node.entries) {
    Value name = eval(*key, scope);
    entries.emplace_back(std::move(name), eval(*value, scope));
  }
  return make_dict(budget_, std::move(entries));
}

Value Interpreter::eval_node(const Not& node, const ScopePtr& scope) {
  return Value(!is_true(eval(*node.operand, scope)));
}

Value Interpreter::eval_node(const Negate& node, const ScopePtr& scope) {
  return negate(eval(*node.operand, scope));
}

Value Interpreter::eval_node(const Binary& node, const ScopePtr& scope) {
  const Value left = eval(*node.left, scope);
  return binary(budget_, node.op, left, eval(*node.right, scope));
}

// The value is one of the operands, as in Python: none or 'x' is 'x'. The right one may not be
// needed.
Value Interpreter::eval_node(const Logic& node, const ScopePtr& scope) {
  Value left = eval(*node.left, scope);
  return is_true(left) == node.is_and ? eval(*node.right, scope) : left;
}

// `in` and `not in` are comparisons too.
Value Interpreter::eval_node(const Compare& node, const ScopePtr& scope) {
  const Value left = eval(*node.left, scope);
  return Value(compare(budget_, node.how, left, eval(*node.right, scope)));
}

// Only one of the two is evaluated.
Value Interpreter::eval_node(const Conditional& node, const ScopePtr& scope) {
  if (is_true(eval(*node.condition, scope))) return eval(*node.yes, scope);
  if (node.no) return eval(*node.no, scope);
  return undefined("the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::eval_node(const Attribute& node, const ScopePtr& scope) {
  return get_attribute(eval(*node.operand, scope), node.name);
}

Value Interpreter::eval_node(const Subscript& node, const ScopePtr& scope) {
  const Value of = eval(*node.operand, scope);
  return get_item(of, eval(*node.index, scope));
}

Value Interpreter::eval_node(const Slice& node, const ScopePtr& scope) {
  const Value of = eval(*node.operand, scope);
  const auto bound = [&](const ExpressionPtr& e) { return e ? eval(*e, scope) : Value(); };
  const Value start = bound(node.start);
  const Value stop = bound(node.stop);
  return slice(budget_, of, start, stop, bound(node.step));
}

// From left to right, *args last.
Arguments Interpreter::eval_arguments(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments values;
  values.positional = eval_all(arguments.positional, scope);
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

Value Interpreter::eval_node(const Call& node, const ScopePtr& scope) {
  const Value callee = eval(*node.operand, scope);
  return call(callee, eval_arguments(node.arguments, scope));
}

// A name is looked up when the filter runs: inside of `if` it may be unknown until then.
Value Interpreter::eval_node(const Filter& node, const ScopePtr& scope) {
  const Value operand = node.operand ? eval(*node.operand, scope) : *block_text_;
  return call_filter(node.name, operand, eval_arguments(node.arguments, scope));
}

Value Interpreter::eval_node(const Test& node, const ScopePtr& scope) {
  const Value operand = eval(*node.operand, scope);
  return Value(call_test(node.name, operand, eval_arguments(node.arguments, scope)));
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

// Tests may give any value; what counts is whether it is true.
bool Interpreter::call_test(std::string_view name, const Value& operand,
                            const Arguments& arguments) {
  const auto* test = find_test(name);
  if (test == nullptr) refuse("test '{}'", name);
  return is_true(run_builtin(*test, operand, arguments));
}

}  // namespace limpid::jinja
