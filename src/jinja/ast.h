// The template as a tree. Immutable once parsed; shared by all renders.
//
// Each node is a plain struct, and a node of any kind is a std::variant of them, so a visitor that
// forgets one does not compile. For example
//
//   {% for m in messages if m.role != 'tool' %}{{ m.content|trim }}{% endfor %}
//
// is a For with target Name(m), iterable Name(messages), condition Compare(kNe, Attribute(Name(m),
// role), Literal('tool')) and a body of one Output(Filter(Attribute(Name(m), content), trim)).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/operators.h"
#include "jinja/value.h"

namespace limpid::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

// f(positional…, *more_positional, name=value…)
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional;  // *args, or null
};

// The expressions. Fields with the same meaning have the same name in all nodes, so that
// for_each_child can visit them all.
struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct NamespaceAttribute {  // only as a target
  std::string space, attribute;
};
struct SequenceDisplay {
  bool is_tuple;
  std::vector<ExpressionPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Not {
  ExpressionPtr operand;
};
struct Negate {
  ExpressionPtr operand;
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Logic {
  bool is_and;
  ExpressionPtr left, right;
};
struct Compare {
  Comparison how;
  ExpressionPtr left, right;
};
struct Conditional {  // `no` may be null
  ExpressionPtr condition, yes, no;
};
struct Attribute {
  ExpressionPtr operand;
  std::string name;
};
struct Subscript {
  ExpressionPtr operand, index;
};
struct Slice {  // bounds may be null
  ExpressionPtr operand, start, stop, step;
};
struct Call {
  ExpressionPtr operand;
  CallArguments arguments;
};
struct Filter {  // operand null: the text of the enclosing filter block
  ExpressionPtr operand;
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr operand;
  std::string name;
  CallArguments arguments;
};

using ExpressionNode = std::variant<Literal, Name, NamespaceAttribute, SequenceDisplay, DictDisplay,
                                    Not, Negate, Binary, Logic, Compare, Conditional, Attribute,
                                    Subscript, Slice, Call, Filter, Test>;

struct Expression {
  size_t at;   // byte in the source
  int height;  // of the tree below: bounds the recursion of every walk over it
  ExpressionNode node;
};

// Calls visit(const ExpressionPtr&) for each part of `expression`; a part may be null.
template <typename Visit>
void for_each_child(const ExpressionNode& expression, Visit&& visit) {
  std::visit(
      [&](const auto& node) {
        if constexpr (requires { node.operand; }) visit(node.operand);
        if constexpr (requires { node.left; }) visit(node.left), visit(node.right);
        if constexpr (requires { node.condition; }) {
          visit(node.condition), visit(node.yes), visit(node.no);
        }
        if constexpr (requires { node.index; }) visit(node.index);
        if constexpr (requires { node.step; }) {
          visit(node.start), visit(node.stop), visit(node.step);
        }
        if constexpr (requires { node.items; }) {
          for (const auto& item : node.items) visit(item);
        }
        if constexpr (requires { node.entries; }) {
          for (const auto& [key, value] : node.entries) visit(key), visit(value);
        }
        if constexpr (requires { node.arguments; }) {
          for (const auto& value : node.arguments.positional) visit(value);
          for (const auto& [name, value] : node.arguments.named) visit(value);
          visit(node.arguments.more_positional);
        }
      },
      expression);
}

// The names of a scope that are undefined until the scope assigns them, even if an outer variable
// has the same name. scopes.cpp explains which names these are.
using LateNames = std::vector<std::string>;

// Statements with a scope of their own.
struct Block {
  LateNames late_names;
  Body body;
};

// Shared with the values of the macro, which may outlive the statement's scope in a namespace.
struct MacroDefinition : Block {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // default values of the last parameters
  bool uses_caller = false;             // its body reads `caller`, so {% call %} may call it
};

// Statements.
struct Text {
  std::string text;
};
struct Output {
  ExpressionPtr value;
};
// The conditions with their bodies in order; `otherwise` is empty without an else.
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For : Block {
  ExpressionPtr target, iterable, condition;  // condition may be null
  Block otherwise;
};
struct Set {
  ExpressionPtr target, value;
};
struct SetBlock : Block {
  ExpressionPtr target;
};
struct MacroStatement {
  std::shared_ptr<MacroDefinition> macro;
};
// The body of a call block is a macro without a name, which the called macro sees as `caller`.
struct CallBlock {
  ExpressionPtr call;
  std::shared_ptr<MacroDefinition> caller;
};
struct FilterBlock : Block {
  ExpressionPtr filter;
};
struct Generation : Block {};
struct Break {};
struct Continue {};

struct Statement {
  size_t at;
  std::variant<Text, Output, If, For, Set, SetBlock, MacroStatement, CallBlock, FilterBlock,
               Generation, Break, Continue>
      node;
};

struct Template : Block {};

}  // namespace limpid::jinja
