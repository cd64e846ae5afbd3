// The statements that run a body more than once.
#include <algorithm>
#include <unordered_map>

#include "jinja/interpreter.h"
#include "jinja/levels.h"
#include "jinja/operators.h"

namespace limpid::jinja {

// `for x in items if condition`: asks for each item when it is wanted, so the condition sees what
// the body did.
class LoopFilter : public IteratorObject {
 public:
  LoopFilter(Interpreter& interpreter, const For& loop, ScopePtr scope,
             std::shared_ptr<IteratorObject> items)
      : IteratorObject(&interpreter.budget_, 0, items->depth() + 1),
        interpreter_(interpreter),
        loop_(loop),
        scope_(std::move(scope)),
        items_(std::move(items)) {}

  bool next(Value& out) override {
    while (items_->next(out)) {
      interpreter_.budget_.spend_step();
      const ScopePtr inner = interpreter_.inner_scope(scope_, {});
      interpreter_.assign(*loop_.target, out, inner);
      if (is_true(interpreter_.eval(*loop_.condition, inner))) return true;
    }
    return false;
  }

 private:
  Interpreter& interpreter_;
  const For& loop_;
  ScopePtr scope_;
  std::shared_ptr<IteratorObject> items_;
};

Interpreter::Flow Interpreter::run_node(const For& loop, const ScopePtr& scope) {
  const Value iterable = eval(*loop.iterable, scope);
  return run_loop(loop, scope, iterable, 0);
}

std::shared_ptr<IteratorObject> Interpreter::loop_items(const For& loop, const ScopePtr& scope,
                                                        const Value& iterable) {
  auto items = iterate(budget_, iterable);
  if (!loop.condition) return items;
  return std::make_shared<LoopFilter>(*this, loop, scope, std::move(items));
}

Interpreter::Flow Interpreter::run_loop(const For& loop, const ScopePtr& scope,
                                        const Value& iterable, int64_t depth0) {
  auto items = loop_items(loop, scope, iterable);
  const Value over = loop.condition ? Value(Kind::kIterator, items) : iterable;
  const auto state = std::make_shared<LoopObject>(&budget_, over, items, depth0);
  if (loop.is_recursive) {
    state->recursion = &loop;
    state->scope = scope;
    captured_scopes_.push_back(scope);
  }
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

Value Interpreter::call_loop(const LoopObject& loop, const Arguments& arguments) {
  const Parameters parameters(arguments, {"iterable"}, 1);
  if (loop.recursion == nullptr) {
    throw Fault("the loop must have the 'recursive' marker to be called recursively");
  }
  if (++call_depth_ > budget_.max_depth()) {
    --call_depth_;
    throw Fault("the template calls itself too deeply");
  }
  TracedText text;
  TracedText* const outer = std::exchange(out_, &text);
  const auto leave = [&] {
    out_ = outer;
    --call_depth_;
  };
  try {
    run_loop(*loop.recursion, loop.scope, parameters[0], loop.depth0 + 1);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return make_string(budget_, std::move(text));
}

Value Interpreter::make_macro(const std::shared_ptr<const MacroDefinition>& definition,
                              const ScopePtr& scope) {
  captured_scopes_.push_back(scope);
  return {Kind::kMacro, std::make_shared<MacroObject>(&budget_, definition, scope)};
}

Interpreter::Flow Interpreter::run_node(const MacroStatement& statement, const ScopePtr& scope) {
  scope->set(statement.macro->name, make_macro(statement.macro, scope));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const CallBlock& block, const ScopePtr& scope) {
  const Value caller = make_macro(block.caller, scope);
  const Value result = eval_call(std::get<Call>(block.call->node), scope, &caller);
  if (!result.is_string()) throw Fault("a call block needs a call that gives text");
  write(result.traced());
  return Flow::kNormal;
}

// The named arguments of a call, each to be taken once.
class NamedArguments {
 public:
  explicit NamedArguments(const std::vector<std::pair<std::string, Value>>& named) : named_(named) {
    for (size_t i = 0; i < named.size(); ++i) places_.emplace(named[i].first, i);
  }
  const Value* take(std::string_view name) {
    const auto found = places_.find(name);
    if (found == places_.end()) return nullptr;
    const Value* value = &named_[found->second].second;
    places_.erase(found);
    return value;
  }
  // What nobody took, in the order of the call.
  template <class Left>
  void for_each_left(Left&& left) const {
    for (const auto& [name, value] : named_) {
      if (places_.contains(name)) left(name, value);
    }
  }

 private:
  const std::vector<std::pair<std::string, Value>>& named_;
  std::unordered_map<std::string_view, size_t> places_;
};

void Interpreter::bind_macro(const MacroObject& macro, const Arguments& arguments,
                             const ScopePtr& scope) {
  const auto& definition = *macro.definition;
  const auto& names = definition.parameters;
  NamedArguments named(arguments.named);
  const size_t n_positional = std::min(arguments.positional.size(), names.size());
  bool found_caller = false;
  budget_.spend(static_cast<int64_t>(names.size() + arguments.named.size()));
  scope->declare_missing(names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i < n_positional) {
      scope->set(names[i], arguments.positional[i]);
    } else if (const Value* value = named.take(names[i])) {
      scope->set(names[i], *value);
    }
    found_caller |= names[i] == "caller";
  }
  if (definition.uses_caller && !found_caller) {
    const Value* caller = named.take("caller");
    const bool given = caller != nullptr && !caller->is(Kind::kNone);
    scope->set("caller", given ? *caller : undefined("No caller defined"));
  }
  if (definition.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    named.for_each_left([&](const std::string& name, const Value& value) {
      entries.emplace_back(make_string(budget_, TracedView(name, Origin::kData)), value);
    });
    scope->set("kwargs", make_dict(budget_, std::move(entries)));
  } else {
    named.for_each_left([&](const std::string& name, const Value&) {
      throw Fault("macro '" + definition.name + "' takes no keyword argument '" + name + "'");
    });
  }
  if (definition.uses_varargs) {
    const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(n_positional);
    scope->set("varargs", make_tuple(budget_, {rest, arguments.positional.end()}));
  } else if (arguments.positional.size() > names.size()) {
    throw Fault("macro '" + definition.name + "' takes not more than " +
                std::to_string(names.size()) + " argument(s)");
  }
}

Value Interpreter::call_macro(const MacroObject& macro, const Arguments& arguments) {
  if (++call_depth_ > budget_.max_depth()) {
    --call_depth_;
    throw Fault("macros call each other too deeply");
  }
  struct Leave {
    int64_t& depth;
    ~Leave() { --depth; }
  } leave{call_depth_};
  budget_.spend_step();
  const auto& definition = *macro.definition;
  const ScopePtr scope = inner_scope(macro.closure, definition.late_names);
  bind_macro(macro, arguments, scope);
  const size_t n_required = definition.parameters.size() - definition.defaults.size();
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const auto& name = definition.parameters[i];
    if (!scope->slots.find(name)->is_missing) continue;
    scope->set(name, i < n_required ? undefined("parameter '" + name + "' was not provided")
                                    : eval(*definition.defaults[i - n_required], scope));
  }
  Flow flow = Flow::kNormal;
  return make_string(budget_, capture(definition.body, scope, flow));
}

}  // namespace limpid::jinja
