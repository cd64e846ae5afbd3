// The hyper-parameters of a GPT-2 as others write them down -> the canonical keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/metadata.h"
#include "layouts/spec_reader.h"

namespace limpid {

// What a configuration says; what it does not stays absent.
struct Gpt2Config {
  std::optional<int64_t> n_layers, n_heads, d_model, d_ff, n_ctx, vocab_size;
  std::optional<std::string> activation;  // as hidden_activation of model/gpt2.h has it
  std::optional<bool> tied;
  std::optional<bool> has_biases;
  double norm_eps = 1e-5;
  bool scale_by_head_dim = true;
  bool scale_by_inverse_layer = false;
};

// Reads transformers' keys (n_embd, n_head, n_layer, n_positions or n_ctx, n_inner, vocab_size,
// activation_function, layer_norm_epsilon, scale_attn_weights, scale_attn_by_inverse_layer_idx,
// tie_word_embeddings) and nanoGPT's for the same (block_size, bias). reorder_and_upcast_attn only
// says in which order and width transformers multiplies by the scale, which is f32 here always:
// both values are taken. Throws UnsupportedError for an activation that is not known, FormatError
// for values out of range or keys that contradict each other.
Gpt2Config read_gpt2_config(SpecReader& config);

// hidden_activation of a function's name in torch or transformers ("gelu_new", "gelu", …); absent
// when Limpid does not know it.
std::optional<std::string> gpt2_activation(std::string_view name);

// Sets general.architecture and gpt2.*. All sizes must be there.
void set_gpt2_keys(const Gpt2Config& config, Metadata& canonical);

}  // namespace limpid
