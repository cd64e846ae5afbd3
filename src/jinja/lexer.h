// Template text -> tokens.
//
// A template is text with tags in it: {{ expression }}, {% statement %} and {# comment #}. Text
// between tags becomes one kData token; a tag becomes its delimiters and the tokens between them.
//
// White space around tags is the hard part, because a prompt must equal that of transformers byte
// by byte. transformers renders with trim_blocks and lstrip_blocks, so for statements and comments
//
//   - blanks between the beginning of a line and the tag go, and so does one newline after the
//   tag;
//   - {%- and -%} drop all white space on their side, also for {{- and -}};
//   - {%+ and +%} keep everything on their side.
//
// "  {% if x %}\nhi" becomes the tokens of the tag and "hi".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/budget.h"

namespace limpid::jinja {

enum class TokenKind : uint8_t {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

// A string is already decoded. A number is not; its kind says how to read it.
struct Token {
  TokenKind kind;
  size_t at;         // byte in the source
  std::string text;  // data, name, decoded string, digits, operator

  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool is_operator(std::string_view symbol) const {
    return kind == TokenKind::kOperator && text == symbol;
  }
};

// A template that cannot be parsed, and where.
struct SyntaxFault {
  size_t at;
  std::string message;
};

// "\r\n" and "\r" become "\n"; one newline at the very end goes (as Jinja does by default).
std::string normalize_newlines(std::string_view source);

// `source` normalized. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

// The state that the parsers of statements and of expressions share: the tokens, and how deeply the
// parsers are nested. at_… asks about the current token. skip_… moves past it if it is the wanted
// one. expect_… does the same, and otherwise fails with a message that names the expected and the
// current token.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, int64_t max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  const Token& current() const { return tokens_[position_]; }
  // The token after the current one.
  const Token& look() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  Token take() {
    Token token = current();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return current().is_name(name); }
  bool at_operator(std::string_view symbol) const { return current().is_operator(symbol); }
  bool skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
  }
  bool skip_operator(std::string_view op) {
    if (!at_operator(op)) return false;
    take();
    return true;
  }
  Token expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) fail_expected(what);
    return take();
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) fail_expected(op);
  }

  [[noreturn]] void fail(std::string message) const {
    throw SyntaxFault{current().at, std::move(message)};
  }
  // Throws SyntaxFault for something that Jinja has and this interpreter lacks.
  [[noreturn]] void refuse(const std::string& what) const { fail(what + kNotSupported); }
  [[noreturn]] void fail_expected(std::string_view what) const {
    fail("expected " + std::string(what) + ", got " + describe(current()));
  }
  // How messages name a token.
  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kData:
        return "text";
      case TokenKind::kString:
        return "a string";
      default:
        return "'" + token.text + "'";
    }
  }

  // Counts a level of nesting while it lives. The parser calls itself for every bracket and every
  // block, so a template of 20,000 brackets would overflow the stack without this.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > stream_.max_depth_) stream_.fail("the template is nested too deeply");
    }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int64_t depth_ = 0;
  int64_t max_depth_;
};

}  // namespace limpid::jinja
