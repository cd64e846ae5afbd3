// Template text -> tokens.
//
// A template is text with tags in it: {{ expression }}, {% statement %} and {# comment #}. Text
// between tags becomes one kData token; a tag becomes its delimiters and the tokens between them.
//
// White space around tags is the hard part, because prompts are compared byte by byte. transformers
// renders with trim_blocks and lstrip_blocks, so for statements and comments
//
//   - blanks between the beginning of a line and the tag go, and so does one newline after the
//   tag;
//   - {%- and -%} drop all white space on their side, also for {{- and -}};
//   - {%+ and +%} keep everything on their side.
//
// "  {% if x %}\nhi" gives the tokens of the tag and "hi".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// A string is decoded already; a number is not, because its kind says how to read it.
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

}  // namespace limpid::jinja
