// Expressions: precedence, filters, tests, calls. A recursive descent; the methods lie in
// operator_expressions.cpp, primary_expressions.cpp and postfix_expressions.cpp. All throw
// SyntaxFault.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "jinja/ast.h"
#include "jinja/token_stream.h"

namespace limpid::jinja {

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& stream, int64_t max_depth)
      : stream_(stream), max_height_(5 * max_depth) {}

  // One expression; without `with_conditional` an `if` is left to the statement (`for … if …`).
  ExpressionPtr expression(bool with_conditional = true);
  // One expression, or a tuple of several between commas. `end_name` also ends it ("in",
  // "recursive").
  ExpressionPtr tuple(bool with_conditional = true, std::string_view end_name = {},
                      bool may_be_empty = false);
  // What stands left of `=`, `in` or in macro parameters; only names (with attributes of
  // namespaces) and tuples.
  ExpressionPtr assign_target(bool with_namespace, std::string_view end_name = {});
  std::string target_name();
  // `|a|b(…)` over `operand`, which may be null. `start_inline`: the first `|` is not there.
  ExpressionPtr filters(ExpressionPtr operand, bool start_inline = false);

  // Unknown filters and tests are an error at once, except inside `if`, where they are one when
  // they run (a template may ask first whether the filter exists). A mark is how many were seen;
  // the statement parser checks or forgets.
  size_t unknown_mark() const { return unknown_.size(); }
  void forget_unknown(size_t mark) { unknown_.resize(mark); }
  void reject_unknown(size_t mark) const;

  // Which of the special names the bodies of the macros around use.
  struct SpecialNames {
    bool caller = false, varargs = false, kwargs = false;
    bool caller_stored = false, varargs_stored = false, kwargs_stored = false;
  };
  void push_macro() { macros_.emplace_back(); }
  SpecialNames pop_macro();
  void note_stored(std::string_view name);

  bool inside_loop = false;  // there the name `loop` cannot be assigned

 private:
  ExpressionPtr make(size_t at, int height_below, ExpressionNode node);
  static int height(const ExpressionPtr& e) { return e ? e->height : 0; }
  static int height(const CallArguments& arguments);

  // operator_expressions.cpp
  ExpressionPtr conditional();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);

  // primary_expressions.cpp
  ExpressionPtr primary(bool with_namespace = false);
  ExpressionPtr name_or_constant(bool with_namespace);
  ExpressionPtr string_literal();
  ExpressionPtr number_literal();
  ExpressionPtr list();
  ExpressionPtr dict();

  // postfix_expressions.cpp
  ExpressionPtr postfix(ExpressionPtr operand);
  ExpressionPtr filters_and_tests(ExpressionPtr operand);
  ExpressionPtr attribute_or_subscript(ExpressionPtr operand);
  ExpressionPtr subscript(ExpressionPtr operand, size_t at);
  ExpressionPtr call(ExpressionPtr callee);
  ExpressionPtr test(ExpressionPtr operand);
  CallArguments call_arguments();
  void call_argument(CallArguments& arguments, std::unordered_set<std::string>& names);

  void note_loaded(std::string_view name);
  void require_assignable(const Expression& target) const;
  bool at_tuple_end(std::string_view end_name) const;

  struct Unknown {
    size_t at;
    std::string what;
  };
  TokenStream& stream_;
  int64_t max_height_;
  std::vector<Unknown> unknown_;
  std::vector<SpecialNames> macros_;
};

}  // namespace limpid::jinja
