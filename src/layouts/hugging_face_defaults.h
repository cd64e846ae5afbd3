// What a Hugging Face folder says about its use: samplers, stop tokens, chat templates.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// Where canonical metadata keep the tokens that end an answer besides the tokenizer's own: an array
// of integers.
constexpr const char* kStopTokenIdsKey = "tokenizer.stop_token_ids";

// generation_config.json (and config.json, where the former is silent) -> general.sampling.* as
// GGUF has them and kStopTokenIdsKey; chat_template.jinja, or else chat_template.json or the entry
// of tokenizer_config.json -> tokenizer.chat_template and tokenizer.chat_template.NAME. Throws
// FormatError for values of the wrong kind.
void read_hugging_face_defaults(const Checkpoint& given, Metadata& canonical);

}  // namespace limpid
