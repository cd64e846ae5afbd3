// The statements that run a body more than once: loops, macros and call blocks.
#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {

LoopObject::LoopObject(Budget* budget, std::vector<Value> values, Accepts condition, int max_depth)
    : Object(budget, values.size() * sizeof(Value), max_depth + 1),
      items(std::move(values)),
      accepts(std::move(condition)) {}

// `loop.last` and `loop.nextitem` need the item after the current one, so the loop can look one
// item ahead. It does so only when asked: the condition of the loop may depend on what the body
// does now.
const Value* LoopObject::peek() {
  while (!ahead && next < items.size()) {
    Value item = std::move(items[next++]);
    if (!accepts || accepts(item)) ahead = std::move(item);
  }
  return ahead ? &*ahead : nullptr;
}

// The next item becomes the current one; false when there is none.
bool LoopObject::advance() {
  if (peek() == nullptr) return false;
  ++index0;
  previous = std::exchange(current, std::move(*ahead));
  ahead.reset();
  return true;
}

// For a loop with a condition the length is that of the items it takes, so all are asked at once.
// Jinja does the same.
int64_t LoopObject::length() {
  if (accepts) {  // the condition decides about all items now
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(next);
    items.erase(
        std::remove_if(begin, items.end(), [&](const Value& item) { return !accepts(item); }),
        items.end());
    accepts = nullptr;
  }
  return index0 + 1 + (ahead ? 1 : 0) + static_cast<int64_t>(items.size() - next);
}

void LoopObject::finish() {
  items.clear();
  next = 0;
  accepts = nullptr;
  ahead.reset();
  current = previous = Value();
}

// Each iteration has a scope of its own with `loop` and the targets; the condition runs in another
// one, where only the targets are set. The guard `finish` drops what the loop refers to when the
// loop is left, also by an error: `loop` may be kept in a namespace.
Interpreter::Flow Interpreter::run_node(const For& loop, const ScopePtr& scope) {
  const Value iterable = eval(*loop.iterable, scope);
  LoopObject::Accepts accepts;
  if (loop.condition) {
    accepts = [this, &loop, scope](const Value& item) {
      budget_.spend_step();
      const ScopePtr inner = inner_scope(scope, {});
      assign(*loop.target, item, inner);
      return is_true(eval(*loop.condition, inner));
    };
  }
  const auto state = std::make_shared<LoopObject>(&budget_, to_vector(budget_, iterable),
                                                  std::move(accepts), iterable.depth());
  struct Finish {
    LoopObject& loop;
    ~Finish() { loop.finish(); }
  } finish{*state};
  bool is_empty = true;
  while (state->advance()) {
    budget_.spend_step();
    const ScopePtr inner = inner_scope(scope, loop.late_names);
    inner->set("loop", Value(Kind::kLoop, state));
    assign(*loop.target, state->current, inner);
    const Flow flow = run(loop.body, inner);
    // As in Jinja: only an iteration that reaches its end keeps `else` from running.
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) is_empty = false;
  }
  if (!is_empty || loop.otherwise.empty()) return Flow::kNormal;
  return run(loop.otherwise, inner_scope(scope, loop.else_late_names));
}

// The scope is noted, so that the interpreter can empty it at its end.
Value Interpreter::make_macro(const std::shared_ptr<const MacroDefinition>& definition,
                              const ScopePtr& scope) {
  captured_scopes_.push_back(scope);
  return {Kind::kMacro, std::make_shared<MacroObject>(&budget_, definition, scope)};
}

Interpreter::Flow Interpreter::run_node(const MacroStatement& statement, const ScopePtr& scope) {
  scope->set(statement.macro->name, make_macro(statement.macro, scope));
  return Flow::kNormal;
}

// The body becomes the macro `caller`, with the scope of the call around it.
Interpreter::Flow Interpreter::run_node(const CallBlock& block, const ScopePtr& scope) {
  const auto& node = std::get<Call>(block.call->node);
  const Value callee = eval(*node.operand, scope);
  Arguments arguments = eval_arguments(node.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(block.caller, scope));
  const Value result = call(callee, arguments);
  if (!result.is_string()) fail("a call block needs a call that gives text");
  write(result.traced());
  return Flow::kNormal;
}

// Unlike builtins, macros take their parameters from the template, thousands if it likes, so
// arguments find them through the scope's table of names.
void Interpreter::bind_macro(const MacroDefinition& macro, const Arguments& arguments,
                             const ScopePtr& scope) {
  const auto& names = macro.parameters;
  budget_.spend(static_cast<int64_t>(names.size() + arguments.named.size()));
  if (arguments.positional.size() > names.size()) {
    fail("macro '{}' takes not more than {} argument(s)", macro.name, names.size());
  }
  scope->declare_missing(names);
  if (macro.uses_caller) scope->set("caller", undefined("No caller defined"));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    scope->set(names[i], arguments.positional[i]);
  }
  for (const auto& [name, value] : arguments.named) {
    auto* slot = scope->slots.find(name);
    const bool is_caller = macro.uses_caller && name == "caller";
    if (slot == nullptr || !(slot->is_missing || is_caller)) {
      fail("macro '{}' takes no keyword argument '{}'", macro.name, name);
    }
    slot->value = value;
    slot->is_missing = false;
  }
}

// A macro gives the text that its body writes. Defaults are evaluated in the scope of the call,
// from left to right, so one may use the parameters before it. A macro may call itself; depth and
// steps bound that.
Value Interpreter::call_macro(const MacroObject& macro, const Arguments& arguments) {
  if (++call_depth_ > budget_.max_depth()) fail("macros call each other too deeply");
  budget_.spend_step();
  const auto& definition = *macro.definition;
  const ScopePtr scope = std::make_shared<Scope>(&budget_, macro.closure);
  bind_macro(definition, arguments, scope);
  const size_t n_required = definition.parameters.size() - definition.defaults.size();
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const auto& name = definition.parameters[i];
    if (!scope->slots.find(name)->is_missing) continue;
    scope->set(name, i < n_required ? undefined("parameter '" + name + "' was not provided")
                                    : eval(*definition.defaults[i - n_required], scope));
  }
  budget_.spend(static_cast<int64_t>(definition.late_names.size()));
  scope->declare_missing(definition.late_names);
  Flow flow = Flow::kNormal;
  Value result = make_string(budget_, capture(definition.body, scope, flow));
  --call_depth_;
  return result;
}

}  // namespace limpid::jinja
