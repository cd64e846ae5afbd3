// What follows an operand: attributes, subscripts, calls, filters, tests.
#include <algorithm>
#include <unordered_set>

#include "jinja/builtins.h"
#include "jinja/expression_parser.h"

namespace limpid::jinja {

int ExpressionParser::height(const CallArguments& arguments) {
  int most = std::max(height(arguments.more_positional), height(arguments.more_named));
  for (const auto& value : arguments.positional) most = std::max(most, height(value));
  for (const auto& [name, value] : arguments.named) most = std::max(most, height(value));
  return most;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  while (true) {
    if (stream_.at_operator(".") || stream_.at_operator("[")) {
      operand = attribute_or_subscript(std::move(operand));
    } else if (stream_.at_operator("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  while (true) {
    if (stream_.at_operator("|")) {
      operand = filters(std::move(operand));
    } else if (stream_.at_name("is")) {
      operand = test(std::move(operand));
    } else if (stream_.at_operator("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::attribute_or_subscript(ExpressionPtr operand) {
  const Token token = stream_.take();
  if (token.text == "[") return subscript(std::move(operand), token.at);
  const int below = height(operand);
  if (stream_.at(TokenKind::kName)) {
    return make(token.at, below, Attribute{std::move(operand), stream_.take().text});
  }
  if (!stream_.at(TokenKind::kInteger)) stream_.fail_expected("a name or a number");
  ExpressionPtr index = number_literal();
  return make(token.at, below + 1, Subscript{std::move(operand), std::move(index)});
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr operand, size_t at) {
  const auto bound = [&]() -> ExpressionPtr {
    if (stream_.at_operator(":") || stream_.at_operator("]") || stream_.at_operator(",")) {
      return nullptr;
    }
    return expression();
  };
  if (stream_.at_operator("]")) stream_.fail_expected("an index");
  ExpressionPtr first = bound();
  if (first && stream_.at_operator(",")) {  // a tuple as a key
    TupleDisplay key;
    int below = std::max(height(operand), height(first));
    key.items.push_back(std::move(first));
    while (stream_.skip_operator(",")) {
      key.items.push_back(expression());
      below = std::max(below, height(key.items.back()));
    }
    stream_.expect_operator("]");
    ExpressionPtr index = make(at, below, std::move(key));
    return make(at, below + 1, Subscript{std::move(operand), std::move(index)});
  }
  if (first && stream_.skip_operator("]")) {
    const int below = std::max(height(operand), height(first));
    return make(at, below, Subscript{std::move(operand), std::move(first)});
  }
  stream_.expect_operator(":");
  ExpressionPtr stop = bound();
  ExpressionPtr step = stream_.skip_operator(":") ? bound() : nullptr;
  stream_.expect_operator("]");
  const int below = std::max({height(operand), height(first), height(stop), height(step)});
  return make(at, below,
              SliceOf{std::move(operand), std::move(first), std::move(stop), std::move(step)});
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  const size_t at = stream_.current().at;
  CallArguments arguments = call_arguments();
  const int below = std::max(height(callee), height(arguments));
  return make(at, below, Call{std::move(callee), std::move(arguments)});
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  stream_.expect_operator("(");
  std::unordered_set<std::string> names;
  bool first = true;
  while (!stream_.at_operator(")")) {
    if (!first) {
      stream_.expect_operator(",");
      if (stream_.at_operator(")")) break;
    }
    first = false;
    call_argument(arguments, names);
  }
  stream_.expect_operator(")");
  return arguments;
}

void ExpressionParser::call_argument(CallArguments& arguments,
                                     std::unordered_set<std::string>& names) {
  const auto require = [&](bool valid) {
    if (!valid) stream_.fail("the arguments of a call are in the wrong order");
  };
  if (stream_.skip_operator("*")) {
    require(!arguments.more_positional && !arguments.more_named);
    arguments.more_positional = expression();
  } else if (stream_.skip_operator("**")) {
    require(!arguments.more_named);
    arguments.more_named = expression();
  } else if (stream_.at(TokenKind::kName) && stream_.look().kind == TokenKind::kOperator &&
             stream_.look().text == "=") {
    require(!arguments.more_named);
    std::string name = stream_.take().text;
    if (!names.insert(name).second) stream_.fail("keyword argument '" + name + "' is repeated");
    stream_.take();
    arguments.named.emplace_back(std::move(name), expression());
  } else {
    require(!arguments.more_positional && !arguments.more_named && arguments.named.empty());
    arguments.positional.push_back(expression());
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr operand, bool start_inline) {
  while (start_inline || stream_.at_operator("|")) {
    if (!start_inline) stream_.take();
    start_inline = false;
    Token token = stream_.expect(TokenKind::kName, "the name of a filter");
    while (stream_.skip_operator(".")) {
      token.text += "." + stream_.expect(TokenKind::kName, "a name").text;
    }
    CallArguments arguments;
    if (stream_.at_operator("(")) arguments = call_arguments();
    if (!is_filter(token.text)) {
      unknown_.push_back({token.at, "no filter named '" + token.text + "'"});
    }
    const int below = std::max(height(operand), height(arguments));
    operand = make(token.at, below,
                   Filter{std::move(operand), std::move(token.text), std::move(arguments)});
  }
  return operand;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr operand) {
  const size_t at = stream_.take().at;
  const bool negated = stream_.skip_name("not");
  Token token = stream_.expect(TokenKind::kName, "the name of a test");
  while (stream_.skip_operator(".")) {
    token.text += "." + stream_.expect(TokenKind::kName, "a name").text;
  }
  CallArguments arguments;
  if (stream_.at_operator("(")) {
    arguments = call_arguments();
  } else {
    const bool begins_operand =
        stream_.at(TokenKind::kName)
            ? !stream_.at_name("else") && !stream_.at_name("or") && !stream_.at_name("and")
            : stream_.at(TokenKind::kString) || stream_.at(TokenKind::kInteger) ||
                  stream_.at(TokenKind::kFloat) || stream_.at_operator("[") ||
                  stream_.at_operator("{");
    if (begins_operand) {
      if (stream_.at_name("is")) stream_.fail("tests with 'is' cannot be chained");
      arguments.positional.push_back(postfix(primary()));
    }
  }
  if (!is_test(token.text)) unknown_.push_back({at, "no test named '" + token.text + "'"});
  const int below = std::max(height(operand), height(arguments));
  ExpressionPtr made =
      make(at, below, Test{std::move(operand), std::move(token.text), std::move(arguments)});
  return negated ? make(at, below + 1, Not{std::move(made)}) : std::move(made);
}

}  // namespace limpid::jinja
