#include "jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_set>

#include "jinja/expression_parser.h"

namespace limpid::jinja {
namespace {

// Statements, by the name of their tag. Expressions inside of tags are read by an ExpressionParser
// over the same tokens.
class Parser {
 public:
  Parser(std::string_view source, int64_t max_depth)
      : stream_(tokenize(source), max_depth), expressions_(stream_, max_depth) {}

  Template parse_template() {
    Template parsed;
    parsed.body = body({});
    expressions_.reject_unknown(0);
    find_late_names(parsed);
    return parsed;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Statements up to a tag in `ends`, whose name is then the current token; all of the template if
  // `ends` is empty. The first of `ends` is the one that no template can do without.
  Body body(Names ends) {
    const auto at_end = [&] {
      return std::ranges::any_of(ends, [&](std::string_view name) { return stream_.at(name); });
    };
    Body statements;
    while (true) {
      const size_t at = stream_.current().at;
      switch (stream_.current().kind) {
        case TokenKind::kEnd:
          if (ends.size() == 0) return statements;
          stream_.fail("the template ends, but '" + std::string(*ends.begin()) + "' is missing");
        case TokenKind::kData:
          statements.push_back({at, Text{stream_.take().text}});
          break;
        case TokenKind::kVariableBegin: {
          stream_.take();
          ExpressionPtr value = expressions_.tuple();
          stream_.expect(TokenKind::kVariableEnd, "'}}'");
          statements.push_back({at, Output{std::move(value)}});
          break;
        }
        default:
          stream_.expect(TokenKind::kBlockBegin, "a tag");
          if (at_end()) return statements;
          statements.push_back(statement());
          stream_.expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
  }

  // The rest of an opening tag, and the body up to one of `ends`.
  Body block(Names ends) {
    const Level level = stream_.deeper();
    stream_.skip(":");
    stream_.expect(TokenKind::kBlockEnd, "'%}'");
    return body(ends);
  }

  // A body with a scope of its own, its end tag taken.
  // Filters and tests that are unknown in it are refused when it ends.
  Block scoped_block(std::string_view end) {
    const size_t mark = expressions_.unknown_mark();
    Block scoped{{}, block({end})};
    stream_.take();
    expressions_.reject_unknown(mark);
    return scoped;
  }

  // One statement, from the name of its tag up to the %} of its last tag, which body() takes.
  Statement statement() {
    const Token tag = stream_.expect(TokenKind::kName, "the name of a tag");
    const std::string_view name = tag.text;
    if (name == "if") return {tag.at, parse_if()};
    if (name == "for") return {tag.at, parse_for()};
    if (name == "set") return parse_set(tag.at);
    if (name == "macro") return {tag.at, parse_macro()};
    if (name == "call") return {tag.at, parse_call()};
    if (name == "filter") return {tag.at, parse_filter()};
    if (name == "generation") {
      const LoopGuard outside(*this, false, false);
      return {tag.at, Generation{scoped_block("endgeneration")}};
    }
    if (name == "break" || name == "continue") {
      if (!can_break_) throw SyntaxFault{tag.at, "'" + tag.text + "' outside of a loop"};
      if (name == "break") return {tag.at, Break{}};
      return {tag.at, Continue{}};
    }
    throw SyntaxFault{tag.at, "tag '" + tag.text + "'" + kNotSupported};
  }

  // if, any number of elif, else. A tag that ends one branch begins the next.
  If parse_if() {
    // Inside `if` a filter may be unknown until it runs.
    const size_t mark = expressions_.unknown_mark();
    If choice;
    std::string next = "elif";
    while (next == "elif") {
      ExpressionPtr condition = expressions_.tuple(false);
      Body statements = block({"endif", "elif", "else"});
      choice.branches.emplace_back(std::move(condition), std::move(statements));
      next = stream_.take().text;
    }
    if (next == "else") {
      choice.otherwise = block({"endif"});
      stream_.take();
    }
    expressions_.forget_unknown(mark);
    return choice;
  }

  // The name `loop` exists in the body and in `else`, and may not be assigned there. break and
  // continue are only allowed in the body.
  For parse_for() {
    For loop;
    {
      const LoopGuard in_loop(*this, true, can_break_);
      loop.target = expressions_.target(false, "in");
    }
    if (!stream_.skip("in")) stream_.fail_expected("'in'");
    loop.iterable = expressions_.tuple(false);
    const size_t mark = expressions_.unknown_mark();
    if (stream_.skip("if")) loop.condition = expressions_.expression();
    if (stream_.at("recursive")) stream_.refuse("a recursive loop");
    {
      const LoopGuard in_loop(*this, true, true);
      loop.body = block({"endfor", "else"});
    }
    if (stream_.take().text == "else") {
      const LoopGuard in_loop(*this, true, can_break_);
      loop.otherwise.body = block({"endfor"});
      stream_.take();
    }
    expressions_.reject_unknown(mark);
    return loop;
  }

  // {% set x = 1 %}, {% set ns.x = 1 %}, {% set a, b = pair %}, or {% set x %}text{% endset %}.
  Statement parse_set(size_t at) {
    ExpressionPtr target = expressions_.target(true);
    if (stream_.skip("=")) return {at, Set{std::move(target), expressions_.tuple()}};
    if (stream_.at("|")) stream_.refuse("a filter of a set block");
    return {at, SetBlock{scoped_block("endset"), std::move(target)}};
  }

  // (a, b=1): the parameters of a macro, or of the body that a call block passes.
  void parse_signature(MacroDefinition& macro) {
    stream_.expect("(");
    std::unordered_set<std::string> names;
    while (!stream_.at(")")) {
      if (!macro.parameters.empty()) stream_.expect(",");
      std::string name = expressions_.target_name();
      if (!names.insert(name).second) stream_.fail("parameter '" + name + "' is repeated");
      if (name == "caller") stream_.refuse("a parameter named 'caller'");
      macro.parameters.push_back(std::move(name));
      if (stream_.skip("=")) {
        macro.defaults.push_back(expressions_.expression());
      } else if (!macro.defaults.empty()) {
        stream_.fail("a parameter without a default follows one with a default");
      }
    }
    stream_.take();
  }

  // Jinja gives a macro the argument `caller` only if its body reads that name, so the body's reads
  // are counted.
  void parse_macro_body(MacroDefinition& macro, std::string_view end) {
    const LoopGuard outside(*this, false, false);
    const bool was_in_macro = std::exchange(expressions_.inside_macro, true);
    const int64_t n_callers = expressions_.n_callers;
    macro.body = scoped_block(end).body;
    macro.uses_caller = expressions_.n_callers > n_callers;
    expressions_.inside_macro = was_in_macro;
  }

  // {% macro name(a, b=1) %}body{% endmacro %}
  MacroStatement parse_macro() {
    auto macro = std::make_shared<MacroDefinition>();
    macro->name = expressions_.target_name();
    const size_t mark = expressions_.unknown_mark();
    parse_signature(*macro);
    parse_macro_body(*macro, "endmacro");
    expressions_.reject_unknown(mark);
    return {std::move(macro)};
  }

  // {% call(x) m(1) %}body{% endcall %} calls m with one more argument, `caller`: a macro made of
  // the body.
  CallBlock parse_call() {
    auto caller = std::make_shared<MacroDefinition>();
    caller->name = "caller";
    if (stream_.at("(")) parse_signature(*caller);
    ExpressionPtr call = expressions_.expression();
    if (!std::holds_alternative<Call>(call->node)) {
      throw SyntaxFault{call->at, "expected a call"};
    }
    parse_macro_body(*caller, "endcall");
    return {std::move(call), std::move(caller)};
  }

  // {% filter upper %}body{% endfilter %}
  FilterBlock parse_filter() {
    const size_t mark = expressions_.unknown_mark();
    ExpressionPtr filter = expressions_.filters(nullptr, true);
    Block statements = scoped_block("endfilter");
    expressions_.reject_unknown(mark);
    return {std::move(statements), std::move(filter)};
  }

  // Says, while it lives, whether the parser is in a loop and whether `break` would find the loop.
  class LoopGuard {
   public:
    LoopGuard(Parser& parser, bool in_loop, bool can_break)
        : parser_(parser),
          in_loop_(parser.expressions_.inside_loop),
          can_break_(parser.can_break_) {
      parser.set_loop(in_loop || in_loop_, can_break);
    }
    ~LoopGuard() { parser_.set_loop(in_loop_, can_break_); }
    LoopGuard(const LoopGuard&) = delete;
    LoopGuard& operator=(const LoopGuard&) = delete;

   private:
    Parser& parser_;
    bool in_loop_, can_break_;
  };
  void set_loop(bool in_loop, bool can_break) {
    expressions_.inside_loop = in_loop;
    can_break_ = can_break;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  bool can_break_ = false;
};

}  // namespace

Template parse(std::string_view source, int64_t max_depth) {
  return Parser(source, max_depth).parse_template();
}

}  // namespace limpid::jinja
