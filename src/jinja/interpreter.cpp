#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/operators.h"

namespace limpid::jinja {

void Scope::set(std::string_view name, Value value) {
  if (Slot* known = slots.find(name)) {
    known->value = std::move(value);
    known->is_missing = false;
    return;
  }
  hold_more(NameTable<Slot>::kBytesPerRow);
  slots.add({name, std::move(value), false});
}

// A missing name is found, and found undefined; a name that is not there is looked up outside.
void Scope::declare_missing(const LateNames& names) {
  hold_more(names.size() * NameTable<Slot>::kBytesPerRow);
  for (const auto& name : names) slots.add({name, Value(), true});
}

void Scope::clear() {
  const auto dropped = std::exchange(slots, {});
  const auto outer = std::move(parent);
}

Interpreter::Interpreter(Budget& budget, int64_t max_output_bytes, int64_t now)
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

// The template's own scope lies in the context, which holds what the caller defined.
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
    const Flow flow = run_statement(statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement, const ScopePtr& scope) {
  const Level level(*this);
  at_ = statement.at;
  budget_.spend_step();
  return std::visit([&](const auto& node) { return run_node(node, scope); }, statement.node);
}

// The output has a limit of its own, because it leaves the interpreter and its budget.
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

// The text of the body becomes the value. A break inside of it leaves the loop and assigns nothing.
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

// Marks what the model writes itself, for training. A render only gives the body a scope.
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
    const Value space = eval_node(Name{place->space}, scope);
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

}  // namespace limpid::jinja
