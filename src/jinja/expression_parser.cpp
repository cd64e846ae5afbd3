#include "jinja/expression_parser.h"

#include <algorithm>

namespace limpid::jinja {

ExpressionPtr ExpressionParser::make(size_t at, int height_below, ExpressionNode node) {
  if (height_below >= max_height_) stream_.fail("an expression is too long");
  auto made = std::make_unique<Expression>();
  made->at = at;
  made->height = height_below + 1;
  made->node = std::move(node);
  return made;
}

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const TokenStream::Level level(stream_);
  return with_conditional ? conditional() : disjunction();
}

void ExpressionParser::reject_unknown(size_t mark) const {
  if (unknown_.size() > mark) throw SyntaxFault{unknown_[mark].at, unknown_[mark].what};
}

ExpressionParser::SpecialNames ExpressionParser::pop_macro() {
  SpecialNames names = macros_.back();
  macros_.pop_back();
  return names;
}

void ExpressionParser::note_stored(std::string_view name) {
  for (auto& macro : macros_) {
    if (name == "caller") macro.caller_stored = true;
    if (name == "varargs") macro.varargs_stored = true;
    if (name == "kwargs") macro.kwargs_stored = true;
  }
}

void ExpressionParser::note_loaded(std::string_view name) {
  for (auto& macro : macros_) {
    if (name == "caller" && !macro.caller_stored) macro.caller = true;
    if (name == "varargs" && !macro.varargs_stored) macro.varargs = true;
    if (name == "kwargs" && !macro.kwargs_stored) macro.kwargs = true;
  }
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return stream_.at(TokenKind::kVariableEnd) || stream_.at(TokenKind::kBlockEnd) ||
         stream_.at_operator(")") || (!end_name.empty() && stream_.at_name(end_name));
}

ExpressionPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name,
                                      bool may_be_empty) {
  const size_t at = stream_.current().at;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    items.push_back(expression(with_conditional));
    if (!stream_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !may_be_empty) stream_.fail_expected("an expression");
  int most = 0;
  for (const auto& item : items) most = std::max(most, height(item));
  return make(at, most, TupleDisplay{std::move(items)});
}

ExpressionPtr ExpressionParser::assign_target(bool with_namespace, std::string_view end_name) {
  const size_t at = stream_.current().at;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  // The names of a target are stored, not loaded; what primary() notes about them does not count.
  const auto macros = macros_;
  while (!at_tuple_end(end_name)) {
    items.push_back(primary(with_namespace));
    if (!stream_.skip_operator(",")) break;
    is_tuple = true;
  }
  macros_ = macros;
  if (items.empty()) stream_.fail_expected("a name to assign to");
  ExpressionPtr target =
      is_tuple ? make(at, 1, TupleDisplay{std::move(items)}) : std::move(items[0]);
  require_assignable(*target);
  return target;
}

void ExpressionParser::require_assignable(const Expression& target) const {
  if (const auto* tuple = std::get_if<TupleDisplay>(&target.node)) {
    for (const auto& item : tuple->items) require_assignable(*item);
  } else if (const auto* name = std::get_if<Name>(&target.node)) {
    if (inside_loop && name->name == "loop") {
      throw SyntaxFault{target.at, "cannot assign to the special variable 'loop' in a for loop"};
    }
  } else if (!std::holds_alternative<NamespaceAttribute>(target.node)) {
    throw SyntaxFault{target.at, "cannot assign to this expression"};
  }
}

std::string ExpressionParser::target_name() {
  Token token = stream_.expect(TokenKind::kName, "a name");
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (token.text == constant) throw SyntaxFault{token.at, "cannot assign to a constant"};
  }
  return std::move(token.text);
}

}  // namespace limpid::jinja
