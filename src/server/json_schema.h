// JSON schemas as grammars, so that an answer is JSON of a given form.
#pragma once

#include <string>

#include "server/json_body.h"

namespace limpid {

// The grammar in GBNF of what fits `schema`, for example
//
//   {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
//   root ::= "{" space "\"age\"" space ":" space integer space "}"
//
// Properties come in the order of the schema, and no others; what is not in `required` may be left
// out. Known are type, const, enum, anyOf, oneOf, $ref within the schema, properties, required,
// additionalProperties, items, prefixItems, minItems, maxItems, minLength and maxLength, beside
// words that describe (title, …). Throws ApiError, which names the place, for anything else, for a
// known word where it would have no effect (maxLength beside $ref), and for schemas of oneOf that
// may fit the same value.
std::string grammar_of_schema(const JsonField& schema);
// The grammar of any object.
std::string grammar_of_any_object();

}  // namespace limpid
