#include "jinja/expression_parser.h"

#include <algorithm>

namespace limpid::jinja {

// Creates every node. The height of the tree is limited, because functions that walk the tree
// recurse. A chain such as 1 + 1 + 1 + … also is a deep tree, although the parser reads it in a
// loop.
ExpressionPtr ExpressionParser::make(size_t at, ExpressionNode node) {
  int height = 1;
  for_each_child(node, [&](const ExpressionPtr& child) {
    if (child) height = std::max(height, child->height + 1);
  });
  if (height > max_height_) stream_.fail("an expression is too long");
  return std::make_unique<Expression>(Expression{at, height, std::move(node)});
}

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const Level level = stream_.deeper();
  return with_conditional ? conditional() : logic(false);
}

// 1, 2 is a tuple; (1) is not, and 1, is one.
ExpressionPtr ExpressionParser::tuple(bool with_conditional, bool may_be_empty) {
  const size_t at = stream_.current().at;
  const auto at_end = [&] {
    return stream_.at(TokenKind::kVariableEnd) || stream_.at(TokenKind::kBlockEnd) ||
           stream_.at(")");
  };
  SequenceDisplay display{true, {}};
  bool has_comma = false;
  while (!at_end()) {
    display.items.push_back(expression(with_conditional));
    if (!stream_.skip(",")) break;
    has_comma = true;
  }
  if (!has_comma && !display.items.empty()) return std::move(display.items[0]);
  if (!has_comma && !may_be_empty) stream_.fail_expected("an expression");
  return make(at, std::move(display));
}

// x or ns.x or a, (b, c). A target is parsed apart from expressions, because a name in it is
// written and not read.
ExpressionPtr ExpressionParser::target(bool with_namespace, std::string_view end_name) {
  const size_t at = stream_.current().at;
  SequenceDisplay display{true, {}};
  bool has_comma = false;
  while (stream_.at(TokenKind::kName) || stream_.at("(")) {
    if (!end_name.empty() && stream_.at(end_name)) break;
    const size_t item_at = stream_.current().at;
    if (stream_.skip("(")) {
      const Level level = stream_.deeper();
      display.items.push_back(target(with_namespace));
      stream_.expect(")");
    } else {
      std::string name = target_name();
      if (with_namespace && stream_.skip(".")) {
        std::string attribute = stream_.expect(TokenKind::kName, "an attribute name").text;
        display.items.push_back(
            make(item_at, NamespaceAttribute{std::move(name), std::move(attribute)}));
      } else if (inside_loop && name == "loop") {
        stream_.fail("cannot assign to the special variable 'loop' in a for loop");
      } else {
        display.items.push_back(make(item_at, Name{std::move(name)}));
      }
    }
    if (!stream_.skip(",")) break;
    has_comma = true;
  }
  if (display.items.empty()) stream_.fail_expected("a name to assign to");
  return has_comma ? make(at, std::move(display)) : std::move(display.items[0]);
}

std::string ExpressionParser::target_name() {
  Token token = stream_.expect(TokenKind::kName, "a name");
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (token.text == constant) throw SyntaxFault{token.at, "cannot assign to a constant"};
  }
  return std::move(token.text);
}

// a if b else c. Without `else` the value is undefined when b is false.
ExpressionPtr ExpressionParser::conditional() {
  const size_t at = stream_.current().at;
  const size_t mark = unknown_mark();
  ExpressionPtr yes = logic(false);
  while (stream_.skip("if")) {
    ExpressionPtr condition = logic(false);
    ExpressionPtr no = stream_.skip("else") ? expression() : nullptr;
    yes = make(at, Conditional{std::move(condition), std::move(yes), std::move(no)});
    forget_unknown(mark);
  }
  return yes;
}

// a or b or c, and with `is_and` a and b and c.
ExpressionPtr ExpressionParser::logic(bool is_and) {
  const size_t at = stream_.current().at;
  const auto operand = [&] { return is_and ? negation() : logic(true); };
  ExpressionPtr left = operand();
  while (stream_.skip(is_and ? "and" : "or")) {
    ExpressionPtr right = operand();
    left = make(at, Logic{is_and, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!stream_.at("not")) return comparison();
  const Level level = stream_.deeper();
  const size_t at = stream_.take().at;
  return make(at, Not{negation()});
}

// Python reads a < b < c as a < b and b < c. No template does that, so it is refused rather than
// misread.
ExpressionPtr ExpressionParser::comparison() {
  constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe}, {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},  {">=", Comparison::kGe}};
  const auto skip_comparison = [&]() -> std::optional<Comparison> {
    for (const auto& [symbol, how] : kSymbols) {
      if (stream_.skip(symbol)) return how;
    }
    if (stream_.skip("in")) return Comparison::kIn;
    if (!stream_.at("not") || !stream_.look().is("in")) return std::nullopt;
    stream_.take();
    stream_.take();
    return Comparison::kNotIn;
  };
  const size_t at = stream_.current().at;
  ExpressionPtr left = binary(0);
  const auto how = skip_comparison();
  if (!how) return left;
  ExpressionPtr right = binary(0);
  ExpressionPtr result = make(at, Compare{*how, std::move(left), std::move(right)});
  if (skip_comparison()) stream_.refuse("a chain of comparisons (a < b < c)");
  return result;
}

// The operators of one level, from the left: 7 - 2 - 1 is (7 - 2) - 1.
ExpressionPtr ExpressionParser::binary(size_t level) {
  struct Row {
    size_t level;
    std::string_view symbol;
    BinaryOperator op;
  };
  constexpr Row kOperators[] = {{0, "+", BinaryOperator::kAdd},    {0, "-", BinaryOperator::kSub},
                                {1, "~", BinaryOperator::kConcat}, {2, "*", BinaryOperator::kMul},
                                {2, "/", BinaryOperator::kDiv},    {2, "%", BinaryOperator::kMod}};
  constexpr size_t kTightest = 2;
  const size_t at = stream_.current().at;
  const auto operand = [&] { return level == kTightest ? unary() : binary(level + 1); };
  ExpressionPtr left = operand();
  while (true) {
    const auto* row = std::ranges::find_if(
        kOperators, [&](const Row& r) { return r.level == level && stream_.at(r.symbol); });
    if (row == std::end(kOperators)) return left;
    stream_.take();
    ExpressionPtr right = operand();
    left = make(at, Binary{row->op, std::move(left), std::move(right)});
  }
}

// The operand of a minus takes attributes and calls but no filters; those apply to the negative.
ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level = stream_.deeper();
  const size_t at = stream_.current().at;
  if (stream_.at("+")) stream_.refuse("the operator '+' before an operand");
  ExpressionPtr operand = stream_.skip("-") ? make(at, Negate{unary(false)}) : primary();
  operand = postfix(std::move(operand));
  for (const std::string_view symbol : {"**", "//"}) {
    if (stream_.at(symbol)) stream_.refuse("the operator '" + std::string(symbol) + "'");
  }
  return with_filters ? filters_and_tests(std::move(operand)) : std::move(operand);
}

}  // namespace limpid::jinja
