#include "tokenizer/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "tokenizer/jinja/builtins.h"

namespace limpid::jinja {

template <typename Node>
ExpressionPtr ExpressionParser::make(size_t at, int height_below, Node node) {
  if (height_below >= max_height_) stream_.fail("an expression is too long");
  auto made = std::make_unique<Expression>();
  made->at = at;
  made->height = height_below + 1;
  made->node = std::move(node);
  return made;
}

int ExpressionParser::height(const CallArguments& arguments) {
  int most = std::max(height(arguments.more_positional), height(arguments.more_named));
  for (const auto& value : arguments.positional) most = std::max(most, height(value));
  for (const auto& [name, value] : arguments.named) most = std::max(most, height(value));
  return most;
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

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const TokenStream::Level level(stream_);
  return with_conditional ? conditional() : disjunction();
}

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
  return make(at, 0, Literal{make_constant_string(std::move(text))});
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
  bool first = true;
  while (!stream_.at_operator(")")) {
    if (!first) {
      stream_.expect_operator(",");
      if (stream_.at_operator(")")) break;
    }
    first = false;
    call_argument(arguments);
  }
  stream_.expect_operator(")");
  return arguments;
}

void ExpressionParser::call_argument(CallArguments& arguments) {
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
    for (const auto& [other, value] : arguments.named) {
      if (other == name) stream_.fail("keyword argument '" + name + "' is repeated");
    }
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
