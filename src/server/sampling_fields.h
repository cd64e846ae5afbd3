// Fields of a request about sampling that are more than a number: stop texts, biases, the chain.
#pragma once

#include "server/json_body.h"
#include "server/request_settings.h"

namespace limpid {

// The largest number of tokens that a field may name; far from overflow.
inline constexpr int64_t kMostTokensOfField = int64_t{1} << 40;

// What a field is read into. `tokenizer` may be null.
struct FieldTarget {
  RequestSettings& settings;
  const Tokenizer* tokenizer;
};

// "a" or ["a", "b"]
void read_stop(const JsonField& field, FieldTarget target);
// OpenAI's {"15043": -100}, and llama-server's [[15043, 1.5], ["text", false]]. A bias of -100 bans
// the token, as OpenAI's reference says.
void read_logit_bias(const JsonField& field, FieldTarget target);
// ["top_k", "temperature"] or "kt": letters as llama.cpp's.
void read_samplers(const JsonField& field, FieldTarget target);
// llama-server's: a grammar in GBNF that the answer follows; "" for none.
void read_grammar(const JsonField& field, FieldTarget target);
// A JSON schema that the answer fits: json_schema.h.
void read_schema(const JsonField& field, FieldTarget target);
// OpenAI's {"type": "text"}, {"type": "json_object"}, which may have a "schema" as in llama-server,
// or {"type": "json_schema", "json_schema": {"schema"}}. In Responses the schema is in the object
// itself.
void read_response_format(const JsonField& field, FieldTarget target);
// Ollama's: "json", which is any JSON object, or a JSON schema; "" for none.
void read_format(const JsonField& field, FieldTarget target);

}  // namespace limpid
