// Conditionals and operators, from the loosest to the tightest: each method reads one level of
// precedence and calls the next.
#include <algorithm>

#include "jinja/expression_parser.h"

namespace limpid::jinja {

ExpressionPtr ExpressionParser::conditional() {
  const size_t at = stream_.current().at;
  const size_t mark = unknown_mark();
  ExpressionPtr yes = disjunction();
  while (stream_.skip_name("if")) {
    ExpressionPtr condition = disjunction();
    ExpressionPtr no = stream_.skip_name("else") ? expression() : nullptr;
    const int below = std::max({height(yes), height(condition), height(no)});
    yes = make(at, below, Conditional{std::move(condition), std::move(yes), std::move(no)});
    forget_unknown(mark);
  }
  return yes;
}

ExpressionPtr ExpressionParser::disjunction() {
  const size_t at = stream_.current().at;
  ExpressionPtr left = conjunction();
  while (stream_.skip_name("or")) {
    ExpressionPtr right = conjunction();
    const int below = std::max(height(left), height(right));
    left = make(at, below, Logic{false, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  const size_t at = stream_.current().at;
  ExpressionPtr left = negation();
  while (stream_.skip_name("and")) {
    ExpressionPtr right = negation();
    const int below = std::max(height(left), height(right));
    left = make(at, below, Logic{true, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!stream_.at_name("not")) return comparison();
  const TokenStream::Level level(stream_);
  const size_t at = stream_.take().at;
  ExpressionPtr operand = negation();
  const int below = height(operand);
  return make(at, below, Not{std::move(operand)});
}

ExpressionPtr ExpressionParser::comparison() {
  using Operator = Compare::Operator;
  constexpr std::pair<std::string_view, Operator> kSymbols[] = {
      {"==", Operator::kEq}, {"!=", Operator::kNe}, {"<", Operator::kLt},
      {"<=", Operator::kLe}, {">", Operator::kGt},  {">=", Operator::kGe}};
  const size_t at = stream_.current().at;
  ExpressionPtr first = sum();
  Compare compare;
  int below = height(first);
  while (true) {
    const auto* symbol =
        std::find_if(std::begin(kSymbols), std::end(kSymbols),
                     [&](const auto& row) { return stream_.at_operator(row.first); });
    Operator op = Operator::kIn;
    if (symbol != std::end(kSymbols)) {
      op = symbol->second;
      stream_.take();
    } else if (stream_.at_name("not") && stream_.look().kind == TokenKind::kName &&
               stream_.look().text == "in") {
      op = Operator::kNotIn;
      stream_.take();
      stream_.take();
    } else if (!stream_.skip_name("in")) {
      break;
    }
    compare.rest.emplace_back(op, sum());
    below = std::max(below, height(compare.rest.back().second));
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return make(at, below, std::move(compare));
}

ExpressionPtr ExpressionParser::sum() {
  const size_t at = stream_.current().at;
  ExpressionPtr left = concatenation();
  while (stream_.at_operator("+") || stream_.at_operator("-")) {
    const auto op = stream_.take().text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSub;
    ExpressionPtr right = concatenation();
    const int below = std::max(height(left), height(right));
    left = make(at, below, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const size_t at = stream_.current().at;
  ExpressionPtr first = product();
  if (!stream_.at_operator("~")) return first;
  int below = height(first);
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (stream_.skip_operator("~")) {
    concat.parts.push_back(product());
    below = std::max(below, height(concat.parts.back()));
  }
  return make(at, below, std::move(concat));
}

ExpressionPtr ExpressionParser::product() {
  constexpr std::pair<std::string_view, BinaryOperator> kSymbols[] = {
      {"*", BinaryOperator::kMul},
      {"/", BinaryOperator::kDiv},
      {"//", BinaryOperator::kFloorDiv},
      {"%", BinaryOperator::kMod}};
  const size_t at = stream_.current().at;
  ExpressionPtr left = power();
  while (true) {
    const auto* symbol =
        std::find_if(std::begin(kSymbols), std::end(kSymbols),
                     [&](const auto& row) { return stream_.at_operator(row.first); });
    if (symbol == std::end(kSymbols)) return left;
    stream_.take();
    ExpressionPtr right = power();
    const int below = std::max(height(left), height(right));
    left = make(at, below, Binary{symbol->second, std::move(left), std::move(right)});
  }
}

ExpressionPtr ExpressionParser::power() {
  const size_t at = stream_.current().at;
  ExpressionPtr left = unary();
  while (stream_.skip_operator("**")) {  // from the left, unlike Python
    ExpressionPtr right = unary();
    const int below = std::max(height(left), height(right));
    left = make(at, below, Binary{BinaryOperator::kPow, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const TokenStream::Level level(stream_);
  const size_t at = stream_.current().at;
  ExpressionPtr operand;
  if (stream_.skip_operator("-")) {
    operand = unary(false);
    const int below = height(operand);
    operand = make(at, below, Negate{std::move(operand)});
  } else if (stream_.skip_operator("+")) {
    operand = unary(false);
    const int below = height(operand);
    operand = make(at, below, Plus{std::move(operand)});
  } else {
    operand = primary();
  }
  operand = postfix(std::move(operand));
  return with_filter ? filters_and_tests(std::move(operand)) : std::move(operand);
}

}  // namespace limpid::jinja
