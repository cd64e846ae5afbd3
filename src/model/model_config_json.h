// The configuration files of other layouts, written from a canonical checkpoint.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// config.json of `transformers`. `dtype` is the name torch has for most tensors' type. Throws
// UnsupportedError for an architecture that has no class there.
std::string hugging_face_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                const std::string& dtype);

// params.json of Meta's models. Throws UnsupportedError for a model that is no Llama.
std::string meta_params(const Checkpoint& checkpoint, const DecoderSpec& spec);

// tokenizer_config.json beside a tokenizer.json that was written from `spec`: the names of the
// special tokens and the chat template.
std::string tokenizer_config(const Checkpoint& checkpoint, const TokenizerSpec& spec);

}  // namespace limpid
