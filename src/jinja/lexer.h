// Template text -> tokens.
//
// A template is text with tags in it: {{ expression }}, {% statement %} and {# comment #}. Text
// between tags becomes one kData token; a tag becomes its delimiters and the tokens between them.
//
// White space around tags is the hard part, because a prompt must equal that of transformers byte
// by byte. transformers renders with trim_blocks and lstrip_blocks, so for statements and comments
//
//   - blanks between the beginning of a line and the tag go, and so does one newline after it;
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

  // Whether it is this name or operator.
  bool is(std::string_view word) const {
    return (kind == TokenKind::kName || kind == TokenKind::kOperator) && text == word;
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
// parsers are nested. `at` asks about the current token. `skip` moves past it if it is the wanted
// one. `expect` does the same, and otherwise fails with a message that names the expected and the
// current token. A word is a name or an operator.
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
  bool at(std::string_view word) const { return current().is(word); }
  bool skip(std::string_view word) {
    if (!at(word)) return false;
    take();
    return true;
  }
  Token expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) fail_expected(what);
    return take();
  }
  void expect(std::string_view word) {
    if (!skip(word)) fail_expected(word);
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
    if (token.kind == TokenKind::kEnd) return "the end of the template";
    if (token.kind == TokenKind::kData) return "text";
    return token.kind == TokenKind::kString ? "a string" : "'" + token.text + "'";
  }

  // One level deeper, as long as the result lives. The parser calls itself for every bracket and
  // every block, so a template of 20,000 brackets would overflow the stack without this.
  Level deeper() {
    if (depth_ >= max_depth_) fail("the template is nested too deeply");
    return Level(depth_);
  }

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int64_t depth_ = 0;
  int64_t max_depth_;
};

}  // namespace limpid::jinja
