// The Llama family with GGUF's names: Llama 2 / 3 / 3.x, Mistral, SmolLM (architecture `llama`),
// Qwen2, Qwen3, ERNIE 4.5.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

// Throws the errors of read_spec in model/registry.h.
DecoderSpec read_llama_spec(const Checkpoint& checkpoint);
TensorTable llama_tensor_table(const DecoderSpec& spec);

}  // namespace limpid
