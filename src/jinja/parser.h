// Tokens -> tree, with Jinja's grammar and precedence.
#pragma once

#include <string_view>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace limpid::jinja {

// `source` normalized. Throws SyntaxFault, also when nesting passes `max_depth`.
Template parse(std::string_view source, int64_t max_depth);

}  // namespace limpid::jinja
