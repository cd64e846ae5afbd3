#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/levels.h"
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

void Scope::declare_missing(const LateNames& names) {
  hold_more(names.size() * NameTable<Slot>::kBytesPerRow);
  for (const auto& name : names) slots.add({name, Value(), true});
}

void Scope::clear() {
  const auto dropped = std::exchange(slots, {});
  const auto outer = std::move(parent);
}

LoopObject::LoopObject(Budget* budget, Value over, std::shared_ptr<IteratorObject> items,
                       int64_t nesting)
    : Object(budget, 0, std::max(over.depth(), items->depth()) + 1),
      iterable(std::move(over)),
      iterator(std::move(items)),
      depth0(nesting) {}

bool LoopObject::advance() {
  Value item;
  if (ahead) {
    item = std::move(*ahead);
    ahead.reset();
  } else if (!iterator || !iterator->next(item)) {
    return false;
  }
  ++index0;
  previous = std::move(current);
  current = std::move(item);
  return true;
}

const Value* LoopObject::peek() {
  if (!ahead) {
    Value item;
    if (!iterator || !iterator->next(item)) return nullptr;
    ahead = std::move(item);
  }
  return &*ahead;
}

int64_t LoopObject::length(Budget& budget) {
  if (!known_length) {
    known_length = length_of(iterable);
    if (!known_length) {  // a generator: read it to its end
      auto rest =
          iterator ? to_vector(budget, Value(Kind::kIterator, iterator)) : std::vector<Value>();
      known_length = static_cast<int64_t>(rest.size()) + index0 + 1 + (ahead ? 1 : 0);
      iterator = iterate(budget, make_list(budget, std::move(rest)));
    }
  }
  return *known_length;
}

void LoopObject::finish() {
  iterator.reset();
  ahead.reset();
  current = Value();
  previous = Value();
  last_changed.clear();
  if (length_of(iterable)) known_length = length_of(iterable);
  iterable = Value();
}

std::string loop_repr(Budget& budget, const Value& value) {
  auto& loop = value.as<LoopObject>();
  const int64_t length = loop.length(budget);
  return "<LoopContext " + std::to_string(loop.index0 + 1) + "/" + std::to_string(length) + ">";
}

Interpreter::Interpreter(Budget& budget, int64_t max_output_bytes, int64_t now)
    : budget_(budget),
      max_output_bytes_(max_output_bytes),
      now_(now),
      context_(std::make_shared<Scope>(&budget, nullptr)) {}

Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->attributes = {};
  for (const auto& scope : captured_scopes_) scope->clear();
}

void Interpreter::define(std::string_view name, Value value) {
  context_->set(name, std::move(value));
}

void Interpreter::keep_namespace(std::shared_ptr<NamespaceObject> space) {
  namespaces_.push_back(std::move(space));
}

TracedText Interpreter::render(const Template& parsed) {
  const ScopePtr scope = inner_scope(context_, parsed.late_names);
  run(parsed.body, scope);
  return std::move(output_);
}

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

void Interpreter::check_output() const {
  if (out_->size() > static_cast<size_t>(max_output_bytes_)) {
    throw Fault("the template writes more than " + std::to_string(max_output_bytes_) + " bytes");
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

Interpreter::Flow Interpreter::run_node(const If& choice, const ScopePtr& scope) {
  for (const auto& [condition, body] : choice.branches) {
    if (is_true(eval(*condition, scope))) return run(body, scope);
  }
  return run(choice.otherwise, scope);
}

TracedText Interpreter::capture(const Body& body, const ScopePtr& scope, Flow& flow) {
  TracedText text;
  TracedText* const outer = std::exchange(out_, &text);
  try {
    flow = run(body, scope);
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  return text;
}

Value Interpreter::apply_block_filter(const ExpressionPtr& filter, TracedText text,
                                      const ScopePtr& scope) {
  Value value = make_string(budget_, std::move(text));
  if (!filter) return value;
  const Value* const outer = std::exchange(block_text_, &value);
  Value filtered;
  try {
    filtered = eval(*filter, scope);
  } catch (...) {
    block_text_ = outer;
    throw;
  }
  block_text_ = outer;
  return filtered;
}

Interpreter::Flow Interpreter::run_node(const Set& set, const ScopePtr& scope) {
  assign(*set.target, eval(*set.value, scope), scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const SetBlock& set, const ScopePtr& scope) {
  const ScopePtr inner = inner_scope(scope, set.late_names);
  Flow flow = Flow::kNormal;
  TracedText text = capture(set.body, inner, flow);
  if (flow != Flow::kNormal) return flow;
  assign(*set.target, apply_block_filter(set.filter, std::move(text), inner), scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const With& with, const ScopePtr& scope) {
  const ScopePtr inner = inner_scope(scope, with.late_names);
  for (const auto& [target, value] : with.assignments) {
    assign(*target, eval(*value, scope), inner);
  }
  return run(with.body, inner);
}

Interpreter::Flow Interpreter::run_node(const FilterBlock& block, const ScopePtr& scope) {
  const ScopePtr inner = inner_scope(scope, block.late_names);
  Flow flow = Flow::kNormal;
  TracedText text = capture(block.body, inner, flow);
  if (flow != Flow::kNormal) return flow;
  append_str(budget_, *out_, apply_block_filter(block.filter, std::move(text), inner));
  check_output();
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const Generation& block, const ScopePtr& scope) {
  return run(block.body, inner_scope(scope, block.late_names));
}

void Interpreter::assign(const Expression& target, const Value& value, const ScopePtr& scope) {
  if (const auto* name = std::get_if<Name>(&target.node)) {
    scope->set(name->name, value);
    return;
  }
  if (const auto* place = std::get_if<NamespaceAttribute>(&target.node)) {
    const Value space = eval_node(Name{place->space}, scope);
    if (!space.is(Kind::kNamespace)) throw Fault("cannot assign attribute on non-namespace object");
    if (!place->attribute.empty() && place->attribute[0] == '_') {
      throw Fault("attributes of a namespace cannot begin with an underscore");
    }
    space.as<NamespaceObject>().set(place->attribute, value);
    return;
  }
  const auto& names = std::get<TupleDisplay>(target.node).items;
  require_defined(value);
  const auto iterator = iterate(budget_, value);
  for (const auto& name : names) {
    Value item;
    if (!iterator->next(item)) {
      throw Fault("not enough values to unpack (expected " + std::to_string(names.size()) + ")");
    }
    assign(*name, item, scope);
  }
  Value rest;
  if (iterator->next(rest)) {
    throw Fault("too many values to unpack (expected " + std::to_string(names.size()) + ")");
  }
}

}  // namespace limpid::jinja
