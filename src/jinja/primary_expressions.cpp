// What an expression begins with: names, constants, displays of lists and dictionaries.
#include <algorithm>
#include <charconv>

#include "jinja/expression_parser.h"

namespace limpid::jinja {

ExpressionPtr ExpressionParser::primary(bool with_namespace) {
  const size_t at = stream_.current().at;
  switch (stream_.current().kind) {
    case TokenKind::kName:
      return name_or_constant(with_namespace);
    case TokenKind::kString:
      return string_literal();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return number_literal();
    default:
      break;
  }
  if (stream_.skip_operator("(")) {
    const TokenStream::Level level(stream_);
    ExpressionPtr inner = tuple(true, {}, true);
    stream_.expect_operator(")");
    return inner;
  }
  if (stream_.at_operator("[")) return list();
  if (stream_.at_operator("{")) return dict();
  throw SyntaxFault{at, "unexpected " + TokenStream::describe(stream_.current())};
}

ExpressionPtr ExpressionParser::name_or_constant(bool with_namespace) {
  Token token = stream_.take();
  if (token.text == "true" || token.text == "True") return make(token.at, 0, Literal{Value(true)});
  if (token.text == "false" || token.text == "False") {
    return make(token.at, 0, Literal{Value(false)});
  }
  if (token.text == "none" || token.text == "None") return make(token.at, 0, Literal{Value()});
  if (with_namespace && stream_.skip_operator(".")) {
    Token attribute = stream_.expect(TokenKind::kName, "an attribute name");
    return make(token.at, 0, NamespaceAttribute{std::move(token.text), std::move(attribute.text)});
  }
  note_loaded(token.text);
  return make(token.at, 0, Name{std::move(token.text)});
}

ExpressionPtr ExpressionParser::string_literal() {
  const size_t at = stream_.current().at;
  std::string text;
  while (stream_.at(TokenKind::kString)) text += stream_.take().text;
  return make(at, 0, Literal{make_literal_string(std::move(text))});
}

ExpressionPtr ExpressionParser::number_literal() {
  const Token token = stream_.take();
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    const auto result = std::from_chars(begin, end, value);
    if (result.ec == std::errc::result_out_of_range) {
      throw SyntaxFault{token.at, "a number is outside the range of a float"};
    }
    return make(token.at, 0, Literal{Value(value)});
  }
  int base = 10;
  if (token.text.size() > 2 && token.text[0] == '0') {
    const char kind = static_cast<char>(token.text[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) begin += 2;
  }
  int64_t value = 0;
  if (std::from_chars(begin, end, value, base).ec != std::errc()) {
    throw SyntaxFault{token.at, "an integer needs more than 64 bits"};
  }
  return make(token.at, 0, Literal{Value(value)});
}

ExpressionPtr ExpressionParser::list() {
  const size_t at = stream_.take().at;
  ListDisplay display;
  int below = 0;
  while (!stream_.at_operator("]")) {
    display.items.push_back(expression());
    below = std::max(below, height(display.items.back()));
    if (!stream_.at_operator("]")) stream_.expect_operator(",");
  }
  stream_.take();
  return make(at, below, std::move(display));
}

ExpressionPtr ExpressionParser::dict() {
  const size_t at = stream_.take().at;
  DictDisplay display;
  int below = 0;
  while (!stream_.at_operator("}")) {
    ExpressionPtr key = expression();
    stream_.expect_operator(":");
    ExpressionPtr value = expression();
    below = std::max({below, height(key), height(value)});
    display.entries.emplace_back(std::move(key), std::move(value));
    if (!stream_.at_operator("}")) stream_.expect_operator(",");
  }
  stream_.take();
  return make(at, below, std::move(display));
}

}  // namespace limpid::jinja
