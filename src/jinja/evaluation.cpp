// Expressions -> values.
#include <unordered_set>

#include "jinja/interpreter.h"
#include "jinja/levels.h"
#include "jinja/operators.h"
#include "jinja/slices.h"

namespace limpid::jinja {

Value Interpreter::eval(const Expression& expression, const ScopePtr& scope) {
  const Level level(*this);
  budget_.spend(1);
  at_ = expression.at;
  Value value =
      std::visit([&](const auto& node) { return eval_node(node, scope); }, expression.node);
  at_ = expression.at;
  return value;
}

std::vector<Value> Interpreter::eval_all(const std::vector<ExpressionPtr>& items,
                                         const ScopePtr& scope) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(eval(*item, scope));
  return values;
}

Value Interpreter::eval_node(const Literal& node, const ScopePtr&) { return node.value; }

Value Interpreter::eval_node(const Name& node, const ScopePtr& scope) {
  for (const Scope* where = scope.get(); where != nullptr; where = where->parent.get()) {
    budget_.spend_bytes(node.name.size());
    if (const auto* slot = where->slots.find(node.name)) {
      return slot->is_missing ? undefined("'" + node.name + "' is undefined") : slot->value;
    }
  }
  if (const auto* global = find_global(node.name)) {
    return {Kind::kFunction,
            std::make_shared<FunctionObject>(&budget_, global->name, global->function, Value())};
  }
  return undefined("'" + node.name + "' is undefined");
}

Value Interpreter::eval_node(const NamespaceAttribute&, const ScopePtr&) {
  throw Fault("a namespace attribute is no value here");
}

Value Interpreter::eval_node(const TupleDisplay& node, const ScopePtr& scope) {
  return make_tuple(budget_, eval_all(node.items, scope));
}

Value Interpreter::eval_node(const ListDisplay& node, const ScopePtr& scope) {
  return make_list(budget_, eval_all(node.items, scope));
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

Value Interpreter::eval_node(const Plus& node, const ScopePtr& scope) {
  return plus(eval(*node.operand, scope));
}

Value Interpreter::eval_node(const Binary& node, const ScopePtr& scope) {
  const Value left = eval(*node.left, scope);
  return binary(budget_, node.op, left, eval(*node.right, scope));
}

Value Interpreter::eval_node(const Concat& node, const ScopePtr& scope) {
  TracedText text;
  for (const auto& part : node.parts) append_str(budget_, text, eval(*part, scope));
  return make_string(budget_, std::move(text));
}

Value Interpreter::eval_node(const Logic& node, const ScopePtr& scope) {
  Value left = eval(*node.left, scope);
  return is_true(left) == node.is_and ? eval(*node.right, scope) : left;
}

Value Interpreter::eval_node(const Compare& node, const ScopePtr& scope) {
  Value left = eval(*node.first, scope);
  for (const auto& [op, operand] : node.rest) {
    Value right = eval(*operand, scope);
    bool holds = false;
    if (op == Compare::Operator::kIn || op == Compare::Operator::kNotIn) {
      holds = contains(budget_, right, left) == (op == Compare::Operator::kIn);
    } else {
      holds = compare(budget_, static_cast<Comparison>(op), left, right);
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::eval_node(const Conditional& node, const ScopePtr& scope) {
  if (is_true(eval(*node.condition, scope))) return eval(*node.yes, scope);
  if (node.no) return eval(*node.no, scope);
  return undefined("the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::eval_node(const Attribute& node, const ScopePtr& scope) {
  return get_attribute(eval(*node.of, scope), node.name);
}

Value Interpreter::eval_node(const Subscript& node, const ScopePtr& scope) {
  const Value of = eval(*node.of, scope);
  return get_item(of, eval(*node.index, scope));
}

Value Interpreter::eval_node(const SliceOf& node, const ScopePtr& scope) {
  const Value of = eval(*node.of, scope);
  const auto bound = [&](const ExpressionPtr& e) { return e ? eval(*e, scope) : Value(); };
  const Value start = bound(node.start);
  const Value stop = bound(node.stop);
  return slice(budget_, of, start, stop, bound(node.step));
}

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
  if (!arguments.more_named) return values;
  const Value more = eval(*arguments.more_named, scope);
  if (!more.is(Kind::kDict)) throw Fault("argument after ** must be a mapping");
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : arguments.named) names.insert(name);
  for (const auto& entry : more.as<DictObject>().entries) {
    const Value& key = entry.first;
    if (!key.is_string()) throw Fault("keywords must be strings");
    if (!names.insert(key.text()).second)
      throw Fault("keyword argument '" + std::string(key.text()) + "' is repeated");
    budget_.spend_bytes(key.text().size());
    values.named.emplace_back(std::string(key.text()), entry.second);
  }
  return values;
}

Value Interpreter::eval_call(const Call& node, const ScopePtr& scope, const Value* caller) {
  const Value callee = eval(*node.callee, scope);
  Arguments arguments = eval_arguments(node.arguments, scope);
  if (caller != nullptr) {
    for (const auto& [name, value] : arguments.named) {
      if (name == "caller") throw Fault("keyword argument 'caller' is repeated");
    }
    arguments.named.emplace_back("caller", *caller);
  }
  return call(callee, arguments);
}

Value Interpreter::eval_node(const Call& node, const ScopePtr& scope) {
  return eval_call(node, scope, nullptr);
}

Value Interpreter::eval_node(const Filter& node, const ScopePtr& scope) {
  const Value operand = node.operand ? eval(*node.operand, scope) : *block_text_;
  return call_filter(node.name, operand, eval_arguments(node.arguments, scope));
}

Value Interpreter::eval_node(const Test& node, const ScopePtr& scope) {
  const Value operand = eval(*node.operand, scope);
  return Value(call_test(node.name, operand, eval_arguments(node.arguments, scope)));
}

void Interpreter::charge_texts(const Value& operand, const Arguments& arguments) {
  if (operand.is_string()) budget_.spend_bytes(operand.text().size());
  for (const auto& value : arguments.positional) {
    if (value.is_string()) budget_.spend_bytes(value.text().size());
  }
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::kFunction: {
      const auto& function = callee.as<FunctionObject>();
      charge_texts(function.self, arguments);
      return function.function(*this, function.self, arguments);
    }
    case Kind::kMacro:
      return call_macro(callee.as<MacroObject>(), arguments);
    case Kind::kLoop:
      return call_loop(callee.as<LoopObject>(), arguments);
    case Kind::kJoiner: {
      auto& joiner = callee.as<JoinerObject>();
      const Parameters none(arguments, {});
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return make_string(budget_, TracedText());
    }
    default:
      break;
  }
  require_defined(callee);
  throw Fault("'" + std::string(python_type_name(callee)) + "' object is not callable");
}

Value Interpreter::call_filter(std::string_view name, const Value& operand,
                               const Arguments& arguments) {
  const auto* filter = find_filter(name);
  if (filter == nullptr) throw Fault("no filter named '" + std::string(name) + "'");
  charge_texts(operand, arguments);
  return filter->function(*this, operand, arguments);
}

bool Interpreter::call_test(std::string_view name, const Value& operand,
                            const Arguments& arguments) {
  const auto* test = find_test(name);
  if (test == nullptr) throw Fault("no test named '" + std::string(name) + "'");
  charge_texts(operand, arguments);
  return is_true(test->function(*this, operand, arguments));
}

}  // namespace limpid::jinja
