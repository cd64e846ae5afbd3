// Which names of a scope are undefined until the scope assigns them.
//
// Jinja compiles a template to Python functions and decides, before it runs, where each name lives.
// The rule shows in this template, where x is 1 outside:
//
//   {% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}
//   {% macro m() %}{% for j in [1] %}{{ x }}{% endfor %}{% set x = 2 %}{% endmacro %}
//
// The loop reads x before it assigns it, so x begins each iteration as the outer one, and the loop
// writes 1112. In the macro, the scope of m assigns x and reads it nowhere itself, so x is a local
// name of m from its beginning: the inner loop finds it undefined, not 1. Such names are the
// scope's late names. A template cannot be rendered as transformers renders it without this rule.
//
// Two walks find them. `collect` notes the reads and writes of one scope in the order of the
// source; then `descend` does the same for each scope inside it, which sees the names of the scopes
// around.
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>

#include "jinja/parser.h"

namespace limpid::jinja {
namespace {

// The names of a scope, or what a branch of an `if` adds to them. A branch sees the names of its
// base and holds its own only, so each name is moved once for each `if` around it.
// For {% if a %}{% set x = 1 %}{% endif %} the branch stores x, but the scope cannot be sure of it,
// so x is not late there: before and after the branch a read of x finds what is outside.
struct Symbols {
  const Symbols* outer = nullptr;  // the scope around
  const Symbols* base = nullptr;   // of a branch
  // Of each name, whether the scope does not find it anywhere when it begins. Other names are
  // parameters, variables of the context (or global functions), or names of a scope around.
  std::map<std::string_view, bool> is_late{};
  std::set<std::string_view> stores{};

  bool has(std::string_view name) const {
    return is_late.contains(name) || (base != nullptr && base->has(name));
  }
  bool knows(std::string_view name) const {
    return has(name) || (outer != nullptr && outer->knows(name));
  }
  bool has_stored(std::string_view name) const {
    return stores.contains(name) || (base != nullptr && base->has_stored(name));
  }
  void parameter(std::string_view name) {
    stores.insert(name);
    is_late[name] = false;
  }
  // A read decides where a name comes from, unless an earlier read or write did.
  void load(std::string_view name) {
    if (!knows(name)) is_late[name] = false;
  }
  // A name that is assigned first is the scope's own. It begins as what a scope around has, or as
  // nothing.
  void store(std::string_view name) {
    stores.insert(name);
    if (!has(name)) is_late[name] = outer == nullptr || !outer->knows(name);
  }
  // The names that an expression reads and a target writes. Order matters, so callers read a value
  // before they write its target.
  void read(const ExpressionPtr& expression) {
    if (!expression) return;
    if (const auto* name = std::get_if<Name>(&expression->node)) load(name->name);
    for_each_child(expression->node, [this](const ExpressionPtr& child) { read(child); });
  }
  void write(const Expression& target, bool as_parameter = false) {
    if (const auto* name = std::get_if<Name>(&target.node)) {
      as_parameter ? parameter(name->name) : store(name->name);
    } else if (const auto* tuple = std::get_if<SequenceDisplay>(&target.node)) {
      for (const auto& item : tuple->items) write(*item, as_parameter);
    } else if (const auto* place = std::get_if<NamespaceAttribute>(&target.node)) {
      load(place->space);
    }
  }
  Symbols branch() const { return {.outer = outer, .base = this}; }
  // Takes over what branches added. What they assign is not certain to be assigned, so it begins as
  // what is outside.
  void merge(std::initializer_list<const Symbols*> branches) {
    for (const auto* branch : branches) {
      for (const auto& [name, late] : branch->is_late) is_late.emplace(name, false);
    }
    for (const auto* branch : branches) {
      for (const auto name : branch->stores) {
        if (has_stored(name)) continue;
        is_late[name] = false;
        stores.insert(name);
      }
    }
  }
  LateNames late_names() const {
    LateNames names;
    for (const auto& [name, late] : is_late) {
      if (late) names.emplace_back(name);
    }
    return names;
  }
};

// Collects the names of one scope: everything in its statements, except the bodies that are scopes
// of their own.
void collect(const Body& body, Symbols& names);

void collect_node(const Text&, Symbols&) {}
void collect_node(const Break&, Symbols&) {}
void collect_node(const Continue&, Symbols&) {}
void collect_node(const Generation&, Symbols&) {}
void collect_node(const Output& n, Symbols& names) { names.read(n.value); }
void collect_node(const For& n, Symbols& names) { names.read(n.iterable); }
void collect_node(const Set& n, Symbols& names) { names.read(n.value), names.write(*n.target); }
void collect_node(const SetBlock& n, Symbols& names) { names.write(*n.target); }
void collect_node(const MacroStatement& n, Symbols& names) { names.store(n.macro->name); }
void collect_node(const CallBlock& n, Symbols& names) { names.read(n.call); }
void collect_node(const FilterBlock& n, Symbols& names) { names.read(n.filter); }
void collect_node(const If& n, Symbols& names) {
  names.read(n.branches[0].first);
  Symbols first = names.branch();
  collect(n.branches[0].second, first);
  Symbols others = names.branch();
  for (size_t i = 1; i < n.branches.size(); ++i) {
    others.read(n.branches[i].first);
    Symbols branch = others.branch();
    collect(n.branches[i].second, branch);
    others.merge({&branch});
  }
  Symbols last = names.branch();
  collect(n.otherwise, last);
  names.merge({&first, &others, &last});
}

void collect(const Body& body, Symbols& names) {
  for (const auto& statement : body) {
    std::visit([&](const auto& node) { collect_node(node, names); }, statement.node);
  }
}

// Goes into the scopes inside `body`, whose own scope has the names `outer`.
void descend(Body& body, const Symbols& outer);

// Finds the late names of the block's scope, and those of the scopes inside.
void analyse(Symbols& symbols, Block& block) {
  collect(block.body, symbols);
  block.late_names = symbols.late_names();
  descend(block.body, symbols);
}

void analyse_macro(MacroDefinition& macro, const Symbols& outer) {
  Symbols symbols{.outer = &outer};
  for (const auto& name : macro.parameters) symbols.parameter(name);
  for (const auto& value : macro.defaults) symbols.read(value);
  if (macro.uses_caller) symbols.parameter("caller");
  analyse(symbols, macro);
}

void descend_into(For& loop, const Symbols& outer) {
  Symbols inside{.outer = &outer};
  inside.parameter("loop");
  inside.write(*loop.target, true);
  analyse(inside, loop);
  Symbols otherwise{.outer = &outer};
  analyse(otherwise, loop.otherwise);
}

// A branch is not a scope: its names belong to the scope around, but bodies inside it may be
// scopes.
void descend_into(If& choice, const Symbols& outer) {
  for (auto& [condition, body] : choice.branches) descend(body, outer);
  descend(choice.otherwise, outer);
}

void descend_into(MacroStatement& statement, const Symbols& outer) {
  analyse_macro(*statement.macro, outer);
}
void descend_into(CallBlock& block, const Symbols& outer) { analyse_macro(*block.caller, outer); }

// SetBlock, FilterBlock, Generation: a body in a scope of its own, without parameters.
template <typename Node>
void descend_into(Node& node, const Symbols& outer) {
  if constexpr (std::is_base_of_v<Block, Node>) {
    Symbols inside{.outer = &outer};
    analyse(inside, node);
  }
}

void descend(Body& body, const Symbols& outer) {
  for (auto& statement : body) {
    std::visit([&](auto& node) { descend_into(node, outer); }, statement.node);
  }
}

}  // namespace

void find_late_names(Template& parsed) {
  Symbols symbols;
  analyse(symbols, parsed);
}

}  // namespace limpid::jinja
