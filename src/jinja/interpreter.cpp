#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

// With its place in the table.
constexpr size_t kBytesPerName = sizeof(std::optional<Value>) + 8 * sizeof(void*);

}  // namespace

void Scope::set(std::string_view name, Value value) {
  if (slots.insert_or_assign(name, std::move(value)).second) hold_more(kBytesPerName);
}

// A missing name is found, and found undefined; a name that is not there is looked up outside.
void Scope::declare_missing(const LateNames& names) {
  hold_more(names.size() * kBytesPerName);
  for (const auto& name : names) slots.emplace(name, std::nullopt);
}

void Scope::clear() {
  const auto dropped = std::exchange(slots, {});
  const auto outer = std::move(parent);
}

Interpreter::Interpreter(Budget& budget, int64_t max_output_bytes, std::optional<int64_t> now)
    : budget_(budget),
      max_output_bytes_(max_output_bytes),
      now_(now),
      context_(std::make_shared<Scope>(&budget, nullptr)) {}

// Breaks all cycles: namespaces may hold themselves, and a scope may hold a macro that keeps the
// scope.
Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->attributes = {};
  for (const auto& scope : captured_scopes_) scope->clear();
}

// The template's own scope is inside the context, which holds the variables of the caller.
TracedText Interpreter::render(const Template& parsed) {
  const ScopePtr scope = inner_scope(context_, parsed.late_names);
  run(parsed.body, scope);
  return std::move(output_);
}

// A scope inside of `scope`, whose late names are missing until they are assigned.
ScopePtr Interpreter::inner_scope(const ScopePtr& scope, const LateNames& late_names) {
  auto inner = std::make_shared<Scope>(&budget_, scope);
  budget_.spend(static_cast<int64_t>(late_names.size()));
  inner->declare_missing(late_names);
  return inner;
}

Interpreter::Flow Interpreter::run(const Body& body, const ScopePtr& scope) {
  for (const auto& statement : body) {
    const Level level = deeper();
    at_ = statement.at;
    budget_.spend_step();
    const Flow flow =
        std::visit([&](const auto& node) { return run_node(node, scope); }, statement.node);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

// The output has its own limit, because it still exists after the render, when the budget no longer
// counts it.
void Interpreter::check_output() const {
  if (out_->size() > static_cast<size_t>(max_output_bytes_)) {
    fail("the template writes more than {} bytes", max_output_bytes_);
  }
}

void Interpreter::write(TracedView text) {
  budget_.spend_bytes(text.size());
  out_->append(text);
  check_output();
}

Interpreter::Flow Interpreter::run_node(const Text& text, const ScopePtr&) {
  write({text.text, Origin::kTemplate});
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const Output& output, const ScopePtr& scope) {
  append_str(budget_, *out_, eval(*output.value, scope));
  check_output();
  return Flow::kNormal;
}

// The first branch whose condition is true, in the scope around.
Interpreter::Flow Interpreter::run_node(const If& choice, const ScopePtr& scope) {
  for (const auto& [condition, body] : choice.branches) {
    if (is_true(eval(*condition, scope))) return run(body, scope);
  }
  return run(choice.otherwise, scope);
}

// A Fault ends the render, so nothing restores `out_` when the body throws.
TracedText Interpreter::capture(const Body& body, const ScopePtr& scope, Flow& flow) {
  TracedText text;
  TracedText* const outer = std::exchange(out_, &text);
  flow = run(body, scope);
  out_ = outer;
  return text;
}

Interpreter::Flow Interpreter::run_node(const Set& set, const ScopePtr& scope) {
  assign(*set.target, eval(*set.value, scope), scope);
  return Flow::kNormal;
}

// The text of the body becomes the value. A break inside the body ends the loop and assigns
// nothing.
Interpreter::Flow Interpreter::run_node(const SetBlock& set, const ScopePtr& scope) {
  Flow flow = Flow::kNormal;
  TracedText text = capture(set.body, inner_scope(scope, set.late_names), flow);
  if (flow == Flow::kNormal) assign(*set.target, make_string(budget_, std::move(text)), scope);
  return flow;
}

// {% filter upper %}…{% endfilter %}: the innermost filter has no operand in the tree and takes the
// text from block_text_.
Interpreter::Flow Interpreter::run_node(const FilterBlock& block, const ScopePtr& scope) {
  const ScopePtr inner = inner_scope(scope, block.late_names);
  Flow flow = Flow::kNormal;
  const Value text = make_string(budget_, capture(block.body, inner, flow));
  if (flow != Flow::kNormal) return flow;
  const Value* const outer = std::exchange(block_text_, &text);
  append_str(budget_, *out_, eval(*block.filter, inner));
  block_text_ = outer;
  check_output();
  return flow;
}

// Marks the text that the model writes itself, which matters only for training. Here the body is
// run in its own scope.
Interpreter::Flow Interpreter::run_node(const Generation& block, const ScopePtr& scope) {
  return run(block.body, inner_scope(scope, block.late_names));
}

// A name, an attribute of a namespace, or several of those, among which the items of the value are
// spread.
void Interpreter::assign(const Expression& target, const Value& value, const ScopePtr& scope) {
  if (const auto* name = std::get_if<Name>(&target.node)) {
    scope->set(name->name, value);
    return;
  }
  if (const auto* place = std::get_if<NamespaceAttribute>(&target.node)) {
    const Value space = look_up(place->space, scope);
    if (!space.is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
    space.as<NamespaceObject>().set(place->attribute, value);
    return;
  }
  const auto& names = std::get<SequenceDisplay>(target.node).items;
  require_defined(value);
  const auto items = to_vector(budget_, value);
  if (items.size() != names.size()) {
    fail("{} values to unpack (expected {})",
         items.size() < names.size() ? "not enough" : "too many", names.size());
  }
  for (size_t i = 0; i < names.size(); ++i) assign(*names[i], items[i], scope);
}

LoopObject::LoopObject(Budget* budget, std::vector<Value> values, Accepts condition, int max_depth)
    : Object(budget, values.size() * sizeof(Value), max_depth + 1),
      items(std::move(values)),
      accepts(std::move(condition)) {}

// `loop.last` and `loop.nextitem` need the item after the current one, so the loop can look one
// item ahead. It does so only when a template reads one of the two, because the condition of the
// loop may depend on what the body does now.
const Value* LoopObject::peek() {
  while (!ahead && next < items.size()) {
    Value item = std::move(items[next++]);
    if (!accepts || accepts(item)) ahead = std::move(item);
  }
  return ahead ? &*ahead : nullptr;
}

// The next item becomes the current one. Returns false at the end.
bool LoopObject::advance() {
  if (peek() == nullptr) return false;
  ++index0;
  previous = std::exchange(current, std::move(*ahead));
  ahead.reset();
  return true;
}

// The length of a loop with a condition is the number of items that the loop takes, so the
// condition is evaluated for all of them at once. Jinja does the same.
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
  if (!is_empty || loop.otherwise.body.empty()) return Flow::kNormal;
  return run(loop.otherwise.body, inner_scope(scope, loop.otherwise.late_names));
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
  if (!result.is_string()) fail("a call block needs a call that returns text");
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
    const auto found = scope->slots.find(name);
    const bool is_caller = macro.uses_caller && name == "caller";
    if (found == scope->slots.end() || (found->second && !is_caller)) {
      fail("macro '{}' takes no keyword argument '{}'", macro.name, name);
    }
    found->second = value;
  }
}

// A macro returns the text that its body writes. Defaults are evaluated in the scope of the call,
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
    if (scope->slots.at(name)) continue;
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
