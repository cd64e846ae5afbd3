// Reads the defaults for use from a Hugging Face folder: sampling, stop tokens, chat templates.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// The canonical key for further tokens that end an answer, in addition to the tokenizer's own: an
// array of integers.
constexpr const char* kStopTokenIdsKey = "tokenizer.stop_token_ids";

// Reads generation_config.json, and config.json for values that the first file does not state, into
// GGUF's keys general.sampling.* and into kStopTokenIdsKey. Reads the chat templates
// (layouts/chat_templates.h) into tokenizer.chat_template and tokenizer.chat_template.NAME. Throws
// FormatError for values of the wrong type.
void read_hugging_face_defaults(const Checkpoint& given, Metadata& canonical);

}  // namespace limpid
