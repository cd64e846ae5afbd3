// Parses operands: names, constants and displays, with the attributes, subscripts, calls, filters
// and tests that follow them.
#include <unordered_set>

#include "base/parse_number.h"
#include "jinja/builtins.h"
#include "jinja/expression_parser.h"

namespace limpid::jinja {

// A name, a constant, a display or something in parentheses.
ExpressionPtr ExpressionParser::primary() {
  if (stream_.at(TokenKind::kName)) return name_or_constant();
  if (stream_.at(TokenKind::kString)) return string();
  if (stream_.at(TokenKind::kInteger) || stream_.at(TokenKind::kFloat)) return number();
  if (stream_.skip("(")) {
    const Level level = stream_.deeper();
    ExpressionPtr inner = tuple(true, true);
    stream_.expect(")");
    return inner;
  }
  if (stream_.at("[")) return list();
  if (stream_.at("{")) return dict();
  stream_.fail("unexpected " + TokenStream::describe(stream_.current()));
}

// Constants are not reserved in Jinja's grammar, only here: true and True are alike.
ExpressionPtr ExpressionParser::name_or_constant() {
  Token token = stream_.take();
  const std::string_view name = token.text;
  if (name == "true" || name == "True") return make(token.at, Literal{Value(true)});
  if (name == "false" || name == "False") return make(token.at, Literal{Value(false)});
  if (name == "none" || name == "None") return make(token.at, Literal{Value()});
  if (inside_macro && (name == "varargs" || name == "kwargs")) {
    stream_.refuse("'" + token.text + "' in a macro");
  }
  n_callers += name == "caller";
  return make(token.at, Name{std::move(token.text)});
}

// Strings beside each other are one: 'a' 'b' is 'ab'.
ExpressionPtr ExpressionParser::string() {
  const size_t at = stream_.current().at;
  std::string text;
  while (stream_.at(TokenKind::kString)) text += stream_.take().text;
  return make(at, Literal{make_literal_string(std::move(text))});
}

ExpressionPtr ExpressionParser::number() {
  const Token token = stream_.take();
  if (token.kind == TokenKind::kFloat) {
    if (const auto real = parse_number<double>(token.text))
      return make(token.at, Literal{Value(*real)});
  } else if (const auto integer = parse_number<int64_t>(token.text)) {
    return make(token.at, Literal{Value(*integer)});
  }
  throw SyntaxFault{token.at, "a number needs more than 64 bits"};
}

ExpressionPtr ExpressionParser::list() {
  const size_t at = stream_.take().at;
  SequenceDisplay display{false, {}};
  while (!stream_.at("]")) {
    display.items.push_back(expression());
    if (!stream_.at("]")) stream_.expect(",");
  }
  stream_.take();
  return make(at, std::move(display));
}

ExpressionPtr ExpressionParser::dict() {
  const size_t at = stream_.take().at;
  DictDisplay display;
  while (!stream_.at("}")) {
    ExpressionPtr key = expression();
    stream_.expect(":");
    display.entries.emplace_back(std::move(key), expression());
    if (!stream_.at("}")) stream_.expect(",");
  }
  stream_.take();
  return make(at, std::move(display));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  while (true) {
    if (stream_.at(".")) {
      operand = attribute(std::move(operand));
    } else if (stream_.at("[")) {
      operand = subscript(std::move(operand));
    } else if (stream_.at("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

// What may follow in any order: x|first is string, f(x)|g(y)(z).
ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  while (true) {
    if (stream_.at("|")) {
      operand = filters(std::move(operand));
    } else if (stream_.at("is")) {
      operand = test(std::move(operand));
    } else if (stream_.at("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

// x.name, or x.0 for x[0].
ExpressionPtr ExpressionParser::attribute(ExpressionPtr operand) {
  const size_t at = stream_.take().at;
  if (stream_.at(TokenKind::kName)) {
    return make(at, Attribute{std::move(operand), stream_.take().text});
  }
  if (!stream_.at(TokenKind::kInteger)) stream_.fail_expected("a name or a number");
  return make(at, Subscript{std::move(operand), number()});
}

// x[i] or x[start:stop:step] with any of the three left out.
ExpressionPtr ExpressionParser::subscript(ExpressionPtr operand) {
  const size_t at = stream_.take().at;
  const auto bound = [&]() -> ExpressionPtr {
    return stream_.at(":") || stream_.at("]") ? nullptr : expression();
  };
  if (stream_.at("]")) stream_.fail_expected("an index");
  ExpressionPtr first = bound();
  if (first && stream_.skip("]")) {
    return make(at, Subscript{std::move(operand), std::move(first)});
  }
  stream_.expect(":");
  ExpressionPtr stop = bound();
  ExpressionPtr step = stream_.skip(":") ? bound() : nullptr;
  stream_.expect("]");
  return make(at, Slice{std::move(operand), std::move(first), std::move(stop), std::move(step)});
}

ExpressionPtr ExpressionParser::call(ExpressionPtr operand) {
  const size_t at = stream_.current().at;
  return make(at, Call{std::move(operand), call_arguments()});
}

// (a, *b, c=1): positional arguments, one list of more, then named ones.
CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  stream_.expect("(");
  std::unordered_set<std::string> names;
  while (!stream_.at(")")) {
    if (stream_.at("**")) stream_.refuse("a call with **");
    if (stream_.at(TokenKind::kName) && stream_.look().is("=")) {
      std::string name = stream_.take().text;
      if (!names.insert(name).second) stream_.fail("keyword argument '" + name + "' is repeated");
      stream_.take();
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      const bool is_starred = stream_.skip("*");
      if (arguments.more_positional || (!is_starred && !names.empty())) {
        stream_.fail("the arguments of a call are in the wrong order");
      }
      ExpressionPtr value = expression();
      if (is_starred) {
        arguments.more_positional = std::move(value);
      } else {
        arguments.positional.push_back(std::move(value));
      }
    }
    if (!stream_.at(")")) stream_.expect(",");
  }
  stream_.take();
  return arguments;
}

// An unknown filter is noted, not refused: see unknown_mark().
ExpressionPtr ExpressionParser::filters(ExpressionPtr operand, bool start_inline) {
  while (start_inline || stream_.skip("|")) {
    start_inline = false;
    Token token = stream_.expect(TokenKind::kName, "the name of a filter");
    CallArguments arguments;
    if (stream_.at("(")) arguments = call_arguments();
    if (find_filter(token.text) == nullptr) {
      unknown_.push_back({token.at, fmt::format("filter '{}'{}", token.text, kNotSupported)});
    }
    operand =
        make(token.at, Filter{std::move(operand), std::move(token.text), std::move(arguments)});
  }
  return operand;
}

// Whether the argument of a test follows without parentheses: x is divisibleby 3.
bool ExpressionParser::at_operand() const {
  if (stream_.at(TokenKind::kName)) {
    return !stream_.at("else") && !stream_.at("or") && !stream_.at("and");
  }
  return stream_.at(TokenKind::kString) || stream_.at(TokenKind::kInteger) ||
         stream_.at(TokenKind::kFloat) || stream_.at("[") || stream_.at("{");
}

// x is defined, x is not none, x is equalto 'a'.
ExpressionPtr ExpressionParser::test(ExpressionPtr operand) {
  const size_t at = stream_.take().at;
  const bool is_negated = stream_.skip("not");
  Token token = stream_.expect(TokenKind::kName, "the name of a test");
  CallArguments arguments;
  if (stream_.at("(")) {
    arguments = call_arguments();
  } else if (at_operand()) {
    if (stream_.at("is")) stream_.fail("tests with 'is' cannot be chained");
    arguments.positional.push_back(postfix(primary()));
  }
  if (find_test(token.text) == nullptr) {
    unknown_.push_back({at, fmt::format("test '{}'{}", token.text, kNotSupported)});
  }
  ExpressionPtr result =
      make(at, Test{std::move(operand), std::move(token.text), std::move(arguments)});
  return is_negated ? make(at, Not{std::move(result)}) : std::move(result);
}

}  // namespace limpid::jinja
