#include "jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_set>

#include "jinja/expression_parser.h"
#include "jinja/scopes.h"
#include "jinja/token_stream.h"

namespace limpid::jinja {
namespace {

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

  bool at_any(Names names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return stream_.at_name(name); });
  }

  // Statements up to a tag in `ends`, whose name is then the current token; all of the template if
  // `ends` is empty.
  Body body(Names ends) {
    Body statements;
    while (true) {
      const size_t at = stream_.current().at;
      switch (stream_.current().kind) {
        case TokenKind::kEnd:
          if (ends.size() != 0) {
            stream_.fail("the template ends, but '" + std::string(*ends.begin()) + "' is missing");
          }
          return statements;
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
          if (at_any(ends)) return statements;
          statement(statements);
          stream_.expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
  }

  // The rest of an opening tag, and the body up to one of `ends`.
  Body block(Names ends) {
    const TokenStream::Level level(stream_);
    stream_.skip_operator(":");
    stream_.expect(TokenKind::kBlockEnd, "'%}'");
    return body(ends);
  }

  // A body with a scope of its own, its end tag taken.
  Body scoped_block(std::string_view end) {
    const size_t mark = expressions_.unknown_mark();
    Body statements = block({end});
    stream_.take();
    expressions_.reject_unknown(mark);
    return statements;
  }

  void statement(Body& out) {
    const Token tag = stream_.expect(TokenKind::kName, "the name of a tag");
    const std::string_view name = tag.text;
    if (name == "if") {
      out.push_back({tag.at, parse_if()});
    } else if (name == "for") {
      out.push_back({tag.at, parse_for()});
    } else if (name == "set") {
      parse_set(tag.at, out);
    } else if (name == "print") {
      parse_print(out);
    } else if (name == "macro") {
      out.push_back({tag.at, parse_macro()});
    } else if (name == "call") {
      out.push_back({tag.at, parse_call()});
    } else if (name == "filter") {
      out.push_back({tag.at, parse_filter()});
    } else if (name == "with") {
      out.push_back({tag.at, parse_with()});
    } else if (name == "generation") {
      const LoopGuard outside(*this, false, false);
      out.push_back({tag.at, Generation{{}, scoped_block("endgeneration")}});
    } else if (name == "break" || name == "continue") {
      if (!can_break_) throw SyntaxFault{tag.at, "'" + tag.text + "' outside of a loop"};
      if (name == "break") {
        out.push_back({tag.at, Break{}});
      } else {
        out.push_back({tag.at, Continue{}});
      }
    } else {
      throw SyntaxFault{tag.at, "unknown or unsupported tag '" + tag.text + "'"};
    }
  }

  If parse_if() {
    // Inside `if` a filter may be unknown until it runs.
    const size_t mark = expressions_.unknown_mark();
    If made;
    std::string_view next = "elif";
    while (next == "elif") {
      ExpressionPtr condition = expressions_.tuple(false);
      Body statements = block({"elif", "else", "endif"});
      made.branches.emplace_back(std::move(condition), std::move(statements));
      const Token tag = stream_.take();
      next = tag.text == "elif" ? "elif" : tag.text == "else" ? "else" : "endif";
    }
    if (next == "else") {
      made.otherwise = block({"endif"});
      stream_.take();
    }
    expressions_.forget_unknown(mark);
    return made;
  }

  For parse_for() {
    For made;
    {
      const LoopGuard inside(*this, true, can_break_);
      made.target = expressions_.assign_target(false, "in");
    }
    note_stored(*made.target);
    if (!stream_.skip_name("in")) stream_.fail_expected("'in'");
    made.iterable = expressions_.tuple(false, "recursive");
    const size_t mark = expressions_.unknown_mark();
    if (stream_.skip_name("if")) made.condition = expressions_.expression();
    made.is_recursive = stream_.skip_name("recursive");
    {
      const LoopGuard inside(*this, true, true);
      made.body = block({"endfor", "else"});
    }
    if (stream_.take().text == "else") {
      const LoopGuard inside(*this, true, can_break_);
      made.otherwise = block({"endfor"});
      stream_.take();
    }
    expressions_.reject_unknown(mark);
    return made;
  }

  void parse_set(size_t at, Body& out) {
    ExpressionPtr target = expressions_.assign_target(true);
    if (stream_.skip_operator("=")) {
      ExpressionPtr value = expressions_.tuple();
      note_stored(*target);
      out.push_back({at, Set{std::move(target), std::move(value)}});
      return;
    }
    note_stored(*target);
    const size_t mark = expressions_.unknown_mark();
    ExpressionPtr filter = expressions_.filters(nullptr);
    Body statements = scoped_block("endset");
    expressions_.reject_unknown(mark);
    out.push_back({at, SetBlock{std::move(target), std::move(filter), {}, std::move(statements)}});
  }

  void parse_print(Body& out) {
    bool first = true;
    while (!stream_.at(TokenKind::kBlockEnd)) {
      if (!first) stream_.expect_operator(",");
      first = false;
      const size_t at = stream_.current().at;
      out.push_back({at, Output{expressions_.expression()}});
    }
  }

  void parse_signature(MacroDefinition& macro) {
    stream_.expect_operator("(");
    std::unordered_set<std::string> names;
    while (!stream_.at_operator(")")) {
      if (!macro.parameters.empty()) stream_.expect_operator(",");
      std::string name = expressions_.target_name();
      if (!names.insert(name).second) stream_.fail("parameter '" + name + "' is repeated");
      macro.parameters.push_back(std::move(name));
      if (stream_.skip_operator("=")) {
        macro.defaults.push_back(expressions_.expression());
      } else if (!macro.defaults.empty()) {
        stream_.fail("a parameter without a default follows one with a default");
      }
    }
    stream_.take();
    for (const auto& name : macro.parameters) expressions_.note_stored(name);
  }

  void parse_macro_body(MacroDefinition& macro, std::string_view end) {
    const LoopGuard outside(*this, inside_loop_, false);
    expressions_.push_macro();
    macro.body = scoped_block(end);
    const auto uses = expressions_.pop_macro();
    const auto is_parameter = [&](std::string_view name) {
      return std::find(macro.parameters.begin(), macro.parameters.end(), name) !=
             macro.parameters.end();
    };
    macro.uses_caller = uses.caller;
    macro.uses_varargs = uses.varargs && !is_parameter("varargs");
    macro.uses_kwargs = uses.kwargs && !is_parameter("kwargs");
    if (uses.caller && is_parameter("caller")) {
      const auto place = static_cast<size_t>(
          std::find(macro.parameters.begin(), macro.parameters.end(), "caller") -
          macro.parameters.begin());
      if (macro.parameters.size() - place > macro.defaults.size()) {
        stream_.fail("the parameter 'caller' needs a default");
      }
    }
  }

  MacroStatement parse_macro() {
    auto macro = std::make_shared<MacroDefinition>();
    macro->name = expressions_.target_name();
    const size_t mark = expressions_.unknown_mark();
    parse_signature(*macro);
    parse_macro_body(*macro, "endmacro");
    expressions_.reject_unknown(mark);
    return {std::move(macro)};
  }

  CallBlock parse_call() {
    auto caller = std::make_shared<MacroDefinition>();
    caller->name = "caller";
    if (stream_.at_operator("(")) parse_signature(*caller);
    ExpressionPtr call = expressions_.expression();
    if (!std::holds_alternative<Call>(call->node)) {
      throw SyntaxFault{call->at, "expected a call"};
    }
    parse_macro_body(*caller, "endcall");
    return {std::move(call), std::move(caller)};
  }

  FilterBlock parse_filter() {
    const size_t mark = expressions_.unknown_mark();
    ExpressionPtr filter = expressions_.filters(nullptr, true);
    Body statements = scoped_block("endfilter");
    expressions_.reject_unknown(mark);
    return {std::move(filter), {}, std::move(statements)};
  }

  With parse_with() {
    With made;
    while (!stream_.at(TokenKind::kBlockEnd)) {
      if (!made.assignments.empty()) stream_.expect_operator(",");
      ExpressionPtr target = single_target();
      stream_.expect_operator("=");
      made.assignments.emplace_back(std::move(target), expressions_.expression());
    }
    made.body = scoped_block("endwith");
    return made;
  }

  ExpressionPtr single_target() {
    ExpressionPtr target = expressions_.assign_target(false);
    note_stored(*target);
    return target;
  }

  void note_stored(const Expression& target) {
    if (const auto* name = std::get_if<Name>(&target.node)) {
      expressions_.note_stored(name->name);
    } else if (const auto* tuple = std::get_if<TupleDisplay>(&target.node)) {
      for (const auto& item : tuple->items) note_stored(*item);
    }
  }

  // Says for as long as it lives whether we are in a loop and whether `break` would find it.
  class LoopGuard {
   public:
    LoopGuard(Parser& parser, bool inside, bool can_break)
        : parser_(parser), inside_(parser.inside_loop_), can_break_(parser.can_break_) {
      parser.set_loop(inside || inside_, can_break);
    }
    ~LoopGuard() { parser_.set_loop(inside_, can_break_); }
    LoopGuard(const LoopGuard&) = delete;
    LoopGuard& operator=(const LoopGuard&) = delete;

   private:
    Parser& parser_;
    bool inside_, can_break_;
  };
  void set_loop(bool inside, bool can_break) {
    inside_loop_ = inside;
    can_break_ = can_break;
    expressions_.inside_loop = inside;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  bool inside_loop_ = false;
  bool can_break_ = false;
};

}  // namespace

Template parse(std::string_view source, int64_t max_depth) {
  return Parser(source, max_depth).parse_template();
}

}  // namespace limpid::jinja
