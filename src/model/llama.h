// The Llama family in GGUF's names: Llama 2 / 3 / 3.x, Mistral, SmolLM (arch `llama`), Qwen2,
// Qwen3.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

// What sets one relative apart from another.
struct LlamaVariant {
  const char* architecture;  // general.architecture
  bool interleaved_rope;     // Q, K rows stored as interleaved pairs
};

// nullptr when the architecture is none of the family.
const LlamaVariant* find_llama_variant(std::string_view architecture);
// "llama, qwen2, qwen3"
std::string llama_variant_names();

DecoderSpec read_llama_spec(const Checkpoint& checkpoint, const LlamaVariant& variant);

// Every tensor that such a model may have.
TensorTable llama_tensor_table(const DecoderSpec& spec);

}  // namespace limpid
