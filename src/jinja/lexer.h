// Template text -> tokens, with Jinja's white-space control (trim_blocks and lstrip_blocks on).
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
