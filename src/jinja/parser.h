// Tokens -> tree, with Jinja's grammar and precedence. Statements are in parser.cpp, expressions in
// expression_parser.cpp and operand_parser.cpp.
#pragma once

#include <string_view>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace limpid::jinja {

// `source` normalized. Throws SyntaxFault, also when nesting passes `max_depth`.
Template parse(std::string_view source, int64_t max_depth);

// Fills the LateNames of all scopes (scopes.cpp); parse() calls it.
void find_late_names(Template& parsed);

}  // namespace limpid::jinja
