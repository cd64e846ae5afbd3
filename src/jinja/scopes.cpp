#include "jinja/scopes.h"

#include <initializer_list>
#include <map>
#include <set>
#include <string_view>

namespace limpid::jinja {
namespace {

// Where a scope finds a name when it begins.
enum class Source : uint8_t { kParameter, kContext, kOuterScope, kNowhere };

// The names of a scope, or what a branch of an `if` adds to them. A branch sees the names of its
// base and holds its own only, so each name is moved once for each `if` around it.
struct Symbols {
  const Symbols* outer = nullptr;  // the scope around
  const Symbols* base = nullptr;   // of a branch
  std::map<std::string_view, Source> sources{};
  std::set<std::string_view> stores{};

  bool has(std::string_view name) const {
    return sources.contains(name) || (base != nullptr && base->has(name));
  }
  bool knows(std::string_view name) const {
    return has(name) || (outer != nullptr && outer->knows(name));
  }
  bool has_stored(std::string_view name) const {
    return stores.contains(name) || (base != nullptr && base->has_stored(name));
  }
  Source outside(std::string_view name, Source otherwise) const {
    return outer != nullptr && outer->knows(name) ? Source::kOuterScope : otherwise;
  }
  void parameter(std::string_view name) {
    stores.insert(name);
    sources[name] = Source::kParameter;
  }
  void load(std::string_view name) {
    if (!knows(name)) sources[name] = Source::kContext;
  }
  void store(std::string_view name) {
    stores.insert(name);
    if (!has(name)) sources[name] = outside(name, Source::kNowhere);
  }
  Symbols branch() const { return {.outer = outer, .base = this}; }
  // Takes over what branches added. What they assign is not certain to be assigned, so it begins as
  // what is outside.
  void merge(std::initializer_list<const Symbols*> branches) {
    for (const auto* branch : branches) {
      for (const auto& [name, source] : branch->sources) sources.emplace(name, Source::kContext);
    }
    for (const auto* branch : branches) {
      for (const auto name : branch->stores) {
        if (has_stored(name)) continue;
        sources[name] = outside(name, Source::kContext);
        stores.insert(name);
      }
    }
  }
  LateNames late_names() const {
    LateNames names;
    for (const auto& [name, source] : sources) {
      if (source == Source::kNowhere) names.emplace_back(name);
    }
    return names;
  }
};

// Notes the names that expressions read and targets write.
class NameVisitor {
 public:
  explicit NameVisitor(Symbols& symbols) : symbols_(symbols) {}

  void read(const ExpressionPtr& expression) {
    if (!expression) return;
    if (const auto* name = std::get_if<Name>(&expression->node)) symbols_.load(name->name);
    for_each_child(expression->node, [this](const ExpressionPtr& child) { read(child); });
  }
  void write(const Expression& target, bool as_parameter = false) {
    if (const auto* name = std::get_if<Name>(&target.node)) {
      as_parameter ? symbols_.parameter(name->name) : symbols_.store(name->name);
    } else if (const auto* tuple = std::get_if<SequenceDisplay>(&target.node)) {
      for (const auto& item : tuple->items) write(*item, as_parameter);
    } else if (const auto* place = std::get_if<NamespaceAttribute>(&target.node)) {
      symbols_.load(place->space);
    }
  }

 private:
  Symbols& symbols_;
};

// Collects the names of one scope: everything in its statements, except the bodies that are scopes
// of their own.
class ScopeVisitor {
 public:
  explicit ScopeVisitor(Symbols& symbols) : symbols_(symbols), names_(symbols) {}

  void visit(const Body& body) {
    for (const auto& statement : body) {
      std::visit([this](const auto& node) { visit_node(node); }, statement.node);
    }
  }

 private:
  void visit_node(const Text&) {}
  void visit_node(const Break&) {}
  void visit_node(const Continue&) {}
  void visit_node(const Generation&) {}
  void visit_node(const Output& n) { names_.read(n.value); }
  void visit_node(const For& n) { names_.read(n.iterable); }
  void visit_node(const Set& n) { names_.read(n.value), names_.write(*n.target); }
  void visit_node(const SetBlock& n) { names_.write(*n.target); }
  void visit_node(const MacroStatement& n) { symbols_.store(n.macro->name); }
  void visit_node(const CallBlock& n) { names_.read(n.call); }
  void visit_node(const FilterBlock& n) { names_.read(n.filter); }
  void visit_node(const If& n) {
    names_.read(n.branches[0].first);
    Symbols first = symbols_.branch();
    ScopeVisitor(first).visit(n.branches[0].second);
    Symbols others = symbols_.branch();
    for (size_t i = 1; i < n.branches.size(); ++i) {
      NameVisitor(others).read(n.branches[i].first);
      Symbols branch = others.branch();
      ScopeVisitor(branch).visit(n.branches[i].second);
      others.merge({&branch});
    }
    Symbols last = symbols_.branch();
    ScopeVisitor(last).visit(n.otherwise);
    symbols_.merge({&first, &others, &last});
  }

  Symbols& symbols_;
  NameVisitor names_;
};

// Goes into the scopes inside `body`, whose own scope has the names `outer`.
void descend(Body& body, const Symbols& outer);

void analyse(Symbols& symbols, Body& body, LateNames& late_names) {
  ScopeVisitor(symbols).visit(body);
  late_names = symbols.late_names();
  descend(body, symbols);
}

void analyse_macro(MacroDefinition& macro, const Symbols& outer) {
  Symbols symbols{.outer = &outer};
  for (const auto& name : macro.parameters) symbols.parameter(name);
  for (const auto& value : macro.defaults) NameVisitor(symbols).read(value);
  if (macro.uses_caller) symbols.parameter("caller");
  analyse(symbols, macro.body, macro.late_names);
}

void descend_into(For& loop, const Symbols& outer) {
  Symbols inside{.outer = &outer};
  inside.parameter("loop");
  NameVisitor(inside).write(*loop.target, true);
  analyse(inside, loop.body, loop.late_names);
  Symbols otherwise{.outer = &outer};
  analyse(otherwise, loop.otherwise, loop.else_late_names);
}

void descend_into(If& choice, const Symbols& outer) {
  for (auto& [condition, body] : choice.branches) descend(body, outer);
  descend(choice.otherwise, outer);
}

void descend_into(MacroStatement& statement, const Symbols& outer) {
  analyse_macro(*statement.macro, outer);
}
void descend_into(CallBlock& block, const Symbols& outer) { analyse_macro(*block.caller, outer); }

// SetBlock, FilterBlock, Generation: a body in a scope of its own, without parameters.
template <typename Block>
void descend_into(Block& block, const Symbols& outer) {
  if constexpr (requires { block.late_names; }) {
    Symbols inside{.outer = &outer};
    analyse(inside, block.body, block.late_names);
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
  analyse(symbols, parsed.body, parsed.late_names);
}

}  // namespace limpid::jinja
