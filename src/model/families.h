// The readers of the model families' own keys, with GGUF's names. read_spec (model/registry.h)
// reads the keys that the families share, and then calls one of these.
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/spec_reader.h"
#include "model/decoder_spec.h"

namespace limpid {

// The Llama family: Llama 2 / 3 / 3.x, Mistral, SmolLM (architecture `llama`), Qwen2, Qwen3, ERNIE
// 4.5. Reads attention.{head_count_kv, key_length, value_length, layer_norm_rms_epsilon} and
// rope.*, and the divisors in rope_freqs.weight.
void read_llama_keys(SpecReader& reader, const Checkpoint& checkpoint, DecoderSpec& spec);

// GPT-2 (Radford et al. 2019): LayerNorm with biases, learned positions, an MLP of two matrices,
// and one matrix [3 d_model, d_model] for Q, K and V. Reads attention.layer_norm_epsilon. Limpid
// adds keys that GGUF does not have: hidden_activation ("gelu_tanh", "gelu_erf", "relu", "silu"),
// attention.scale, attention.scale_by_inverse_layer, and for Karpathy's microgpt norm ("layer",
// "rms") and outer_norm ("output", "embedding").
void read_gpt2_keys(SpecReader& reader, DecoderSpec& spec);

}  // namespace limpid
