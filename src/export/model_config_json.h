// Writes the configuration files of other layouts from a canonical checkpoint.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns the config.json of `transformers` for a result of completed_for_class. `tokenizer` may be
// absent; `dtype` is torch's name for the type of most tensors. Throws UnsupportedError for an
// architecture without a class in transformers, and for a model that its class cannot express.
std::string hugging_face_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                const std::optional<TokenizerSpec>& tokenizer,
                                const std::string& dtype);

// Returns generation_config.json: the tokens that end an answer, and the sampling that the model
// recommends. Returns "" when there is nothing to write.
std::string generation_config(const Checkpoint& checkpoint,
                              const std::optional<TokenizerSpec>& tokenizer);

// Returns 1_Pooling/config.json of sentence-transformers, for the type of pooling that the metadata
// state. Returns "" if they state none that sentence-transformers has.
std::string pooling_config(const Checkpoint& checkpoint, const DecoderSpec& spec);
// Returns modules.json, which has sentence-transformers read that file.
std::string embedding_modules();

// Returns the params.json of Meta's models. Throws UnsupportedError for a model that is not a
// Llama.
std::string meta_params(const Checkpoint& checkpoint, const DecoderSpec& spec);

// Returns what nanoGPT's ckpt.pt has beside a state dictionary: `model_args`, of which nanoGPT
// makes its model, and `config`, where Limpid finds the activation, which nanoGPT does not state.
// Throws UnsupportedError for a model that nanoGPT cannot express.
nlohmann::ordered_json nano_gpt_arguments(const Checkpoint& checkpoint, const DecoderSpec& spec);

// Returns tokenizer_config.json for a tokenizer.json that was written from `spec`: the names of the
// special tokens, and the chat template.
std::string tokenizer_config(const Checkpoint& checkpoint, const TokenizerSpec& spec);

}  // namespace limpid
