// The template as a tree. Immutable once parsed; shared by all renders.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional;  // *args, or null
  ExpressionPtr more_named;       // **kwargs, or null
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct NamespaceAttribute {  // only as a target
  std::string space, attribute;
};
struct TupleDisplay {
  std::vector<ExpressionPtr> items;
};
struct ListDisplay {
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
struct Plus {
  ExpressionPtr operand;
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Concat {
  std::vector<ExpressionPtr> parts;
};
struct Logic {
  bool is_and;
  ExpressionPtr left, right;
};
struct Compare {
  enum class Operator : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
  ExpressionPtr first;
  std::vector<std::pair<Operator, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr condition, yes, no;
};  // `no` may be null
struct Attribute {
  ExpressionPtr of;
  std::string name;
};
struct Subscript {
  ExpressionPtr of, index;
};
struct SliceOf {  // bounds may be null
  ExpressionPtr of, start, stop, step;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {  // operand null: the block's text
  ExpressionPtr operand;
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr operand;
  std::string name;
  CallArguments arguments;
};

using ExpressionNode = std::variant<Literal, Name, NamespaceAttribute, TupleDisplay, ListDisplay,
                                    DictDisplay, Not, Negate, Plus, Binary, Concat, Logic, Compare,
                                    Conditional, Attribute, Subscript, SliceOf, Call, Filter, Test>;

struct Expression {
  size_t at;   // byte in the source
  int height;  // of the tree below: bounds the recursion of whoever walks it
  ExpressionNode node;
};

// A scope's late names: Jinja decides at compile time which names are local. A name that the scope
// assigns before it reads it (in the order of the source, loop bodies aside) is undefined until
// then, even where an outer variable has the same name.
using LateNames = std::vector<std::string>;

struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  LateNames late_names;
  Body body;
};

struct Text {
  std::string text;
};
struct Output {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  ExpressionPtr target, iterable, condition;  // condition may be null
  bool is_recursive = false;
  LateNames late_names, else_late_names;
  Body body, otherwise;
};
struct Set {
  ExpressionPtr target, value;
};
struct SetBlock {  // filter may be null
  ExpressionPtr target, filter;
  LateNames late_names;
  Body body;
};
struct With {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;
  LateNames late_names;
  Body body;
};
struct MacroStatement {
  std::shared_ptr<MacroDefinition> macro;
};
struct CallBlock {
  ExpressionPtr call;
  std::shared_ptr<MacroDefinition> caller;
};
struct FilterBlock {
  ExpressionPtr filter;
  LateNames late_names;
  Body body;
};
struct Generation {
  LateNames late_names;
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  size_t at;
  std::variant<Text, Output, If, For, Set, SetBlock, With, MacroStatement, CallBlock, FilterBlock,
               Generation, Break, Continue>
      node;
};

struct Template {
  LateNames late_names;
  Body body;
};

}  // namespace limpid::jinja
