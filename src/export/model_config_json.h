// The configuration files of other layouts, written from a canonical checkpoint.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// config.json of `transformers`, for what completed_for_class gives. `tokenizer` may be null;
// `dtype` is the name torch has for most tensors' type. Throws UnsupportedError for an architecture
// that has no class there, and for what its class cannot do.
std::string hugging_face_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                const TokenizerSpec* tokenizer, const std::string& dtype);

// generation_config.json: what ends an answer, and the samplers that the model recommends. "" when
// there is nothing to say.
std::string generation_config(const Checkpoint& checkpoint, const TokenizerSpec* tokenizer);

// params.json of Meta's models. Throws UnsupportedError for a model that is no Llama.
std::string meta_params(const Checkpoint& checkpoint, const DecoderSpec& spec);

// tokenizer_config.json beside a tokenizer.json that was written from `spec`: the names of the
// special tokens and the chat template.
std::string tokenizer_config(const Checkpoint& checkpoint, const TokenizerSpec& spec);

}  // namespace limpid
