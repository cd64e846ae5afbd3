// The configuration files of other layouts, written from a canonical checkpoint.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"

namespace limpid {

// config.json of `transformers`. `dtype` is the name torch has for most tensors' type. Throws
// UnsupportedError for an architecture that has no class there.
std::string hugging_face_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                const std::string& dtype);

// params.json of Meta's models. Throws UnsupportedError for a model that is no Llama.
std::string meta_params(const Checkpoint& checkpoint, const DecoderSpec& spec);

}  // namespace limpid
