// One render of a template: walks the tree with scopes, loops and macros, and writes text.
//
// eval() gives the value of an expression, run() executes a body. Both dispatch over the variants
// of ast.h to an overload for each node. Statements are in interpreter.cpp; expressions, attributes
// and items in evaluation.cpp. An error is a Fault; position() then returns the place in the source
// that was evaluated.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/ast.h"
#include "jinja/builtins.h"

namespace limpid::jinja {

// The names of a body, a loop iteration or a macro call. A look-up goes outwards through `parent`,
// a write stays in its scope: that is why {% set %} inside a loop does not change what is outside,
// and why templates use namespaces for that. Shared, because a macro keeps the scope that it was
// defined in.
struct Scope : Object {
  Scope(Budget* budget, std::shared_ptr<Scope> outer)
      : Object(budget, 0), parent(std::move(outer)) {}
  void set(std::string_view name, Value value);
  void declare_missing(const LateNames& names);
  void clear();

  std::shared_ptr<Scope> parent;
  // Of this scope only, by name. Nothing: local to this scope, but not assigned yet.
  std::unordered_map<std::string_view, std::optional<Value>> slots;
};
using ScopePtr = std::shared_ptr<Scope>;

// A macro as a value: its definition, and the scope in which it was defined, where names that are
// not its own are looked up.
struct MacroObject : Object {
  MacroObject(Budget* budget, std::shared_ptr<const MacroDefinition> what, ScopePtr where)
      : Object(budget, 0), definition(std::move(what)), closure(std::move(where)) {}
  const std::shared_ptr<const MacroDefinition> definition;
  const ScopePtr closure;
};

// `loop`: walks the items and knows one item ahead.
struct LoopObject : Object {
  // Whether the loop takes an item: the `if` of the loop, or empty. It is evaluated when the item
  // is needed, so it sees what the body has done for earlier items.
  using Accepts = std::function<bool(const Value&)>;

  LoopObject(Budget* budget, std::vector<Value> values, Accepts condition, int max_depth);
  bool advance();       // to the next item; false at the end
  const Value* peek();  // the item after the current one, or null
  int64_t length();
  void finish();  // drops the items; index and length stay readable

  std::vector<Value> items;
  size_t next = 0;  // of items
  Accepts accepts;
  int64_t index0 = -1;
  Value current, previous;
  std::optional<Value> ahead;
};

class Interpreter {
 public:
  Interpreter(Budget& budget, int64_t max_output_bytes, std::optional<int64_t> now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Defines a variable of the context; `name` must live on.
  void define(std::string_view name, Value value) { context_->set(name, std::move(value)); }
  TracedText render(const Template& parsed);
  // Byte of the source that was evaluated last: where a Fault happened.
  size_t position() const { return at_; }

  Budget& budget() { return budget_; }
  // Unix seconds for strftime_now; without a value: the clock.
  std::optional<int64_t> now() const { return now_; }
  // The methods that builtins use: they call values, filters and tests, and read attributes of
  // objects.
  Value call(const Value& callee, const Arguments& arguments);
  Value call_filter(std::string_view name, const Value& operand, const Arguments& arguments);
  bool call_test(std::string_view name, const Value& operand, const Arguments& arguments);
  Value get_attribute(const Value& of, std::string_view name);
  Value get_item(const Value& of, const Value& key);
  void keep_namespace(std::shared_ptr<NamespaceObject> space) {
    namespaces_.push_back(std::move(space));
  }
  Value undefined(std::string message) { return make_undefined(budget_, std::move(message)); }

 private:
  // How a body ended: at its end, or at {% break %} or {% continue %}.
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };

  Flow run(const Body& body, const ScopePtr& scope);
  Flow run_node(const Text& text, const ScopePtr& scope);
  Flow run_node(const Output& output, const ScopePtr& scope);
  Flow run_node(const If& choice, const ScopePtr& scope);
  Flow run_node(const For& loop, const ScopePtr& scope);
  Flow run_node(const Set& set, const ScopePtr& scope);
  Flow run_node(const SetBlock& set, const ScopePtr& scope);
  Flow run_node(const MacroStatement& statement, const ScopePtr& scope);
  Flow run_node(const CallBlock& block, const ScopePtr& scope);
  Flow run_node(const FilterBlock& block, const ScopePtr& scope);
  Flow run_node(const Generation& block, const ScopePtr& scope);
  Flow run_node(const Break&, const ScopePtr&) { return Flow::kBreak; }
  Flow run_node(const Continue&, const ScopePtr&) { return Flow::kContinue; }

  // Runs `body` with the output going to the returned text.
  TracedText capture(const Body& body, const ScopePtr& scope, Flow& flow);
  void write(TracedView text);
  void check_output() const;
  ScopePtr inner_scope(const ScopePtr& scope, const LateNames& late_names);
  void assign(const Expression& target, const Value& value, const ScopePtr& scope);
  Value make_macro(const std::shared_ptr<const MacroDefinition>& definition, const ScopePtr& scope);
  Value call_macro(const MacroObject& macro, const Arguments& arguments);
  void bind_macro(const MacroDefinition& macro, const Arguments& arguments, const ScopePtr& scope);

  Value eval(const Expression& expression, const ScopePtr& scope);
  Value look_up(const std::string& name, const ScopePtr& scope);
  Arguments eval_arguments(const CallArguments& arguments, const ScopePtr& scope);
  // Charges the texts that a builtin may read, binds its arguments and runs it.
  Value run_builtin(const Builtin& builtin, const Value& self, const Arguments& arguments);
  // What Python's getattr() finds, methods included.
  std::optional<Value> python_attribute(const Value& of, std::string_view name);
  std::optional<Value> loop_attribute(LoopObject& loop, std::string_view name);

  struct Evaluation;  // evaluation.cpp
  // One level deeper, as long as the result lives, so that no tree overflows the stack.
  Level deeper() {
    constexpr int64_t kLevelsPerDepth = 10;
    if (depth_ >= kLevelsPerDepth * budget_.max_depth()) fail("the template is nested too deeply");
    return Level(depth_);
  }

  // The state of a render. `out_` is where output goes: to output_, or to the text that a macro or
  // a block captures.
  Budget& budget_;
  int64_t max_output_bytes_;
  std::optional<int64_t> now_;
  ScopePtr context_;
  TracedText output_;
  TracedText* out_ = &output_;
  size_t at_ = 0;
  int64_t depth_ = 0;
  int64_t call_depth_ = 0;
  const Value* block_text_ = nullptr;  // the text of the filter block that is being run
  // Emptied at the end of the render. Every cycle of references goes through one of these, so
  // nothing leaks.
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
  std::vector<ScopePtr> captured_scopes_;
};

}  // namespace limpid::jinja
