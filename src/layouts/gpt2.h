// Reads the hyper-parameters of a GPT-2 from transformers, nanoGPT or minGPT and writes the
// canonical keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"

namespace limpid {

// The values that a configuration states. A value that the configuration does not state is absent.
struct Gpt2Config {
  std::optional<int64_t> n_layers, n_heads, d_model, d_ff, n_ctx, vocab_size;
  std::optional<std::string> activation;  // a value of hidden_activation (read_gpt2_keys)
  std::optional<bool> tied;
  std::optional<bool> has_biases;
  std::optional<double> norm_eps;                                 // absent: 1e-5
  std::optional<bool> scale_by_head_dim, scale_by_inverse_layer;  // absent: true, false
};

// Reads the values that `into` lacks. The keys are those of transformers (n_embd, n_head, n_layer,
// n_positions or n_ctx, n_inner, vocab_size, activation_function, layer_norm_epsilon,
// scale_attn_weights, scale_attn_by_inverse_layer_idx, tie_word_embeddings) and those of nanoGPT
// (block_size, bias).
// Both values of reorder_and_upcast_attn are accepted: the key only chooses the order and the width
// in which transformers multiplies by the scale, and Limpid always multiplies in f32. Throws
// UnsupportedError for an unknown activation, FormatError for a value out of range or for
// contradictory keys.
void read_gpt2_config(SpecReader& config, Gpt2Config& into);

// Marks the keys of classification heads as read. A causal language model does not use them.
void ignore_summary(SpecReader& config);

// Reads config.json of GPT2LMHeadModel, with the defaults of transformers: gelu_new, tied
// embeddings, and a feed-forward width of four times d_model. The tensor names are in
// kGpt2Conv1dNames.
OptionalParts read_hugging_face_gpt2(SpecReader& config, const ModelClass& model_class,
                                     Metadata& canonical);

// Sets general.architecture and gpt2.*. All sizes of `config` must be present.
void set_gpt2_keys(const Gpt2Config& config, Metadata& canonical);

// Hugging Face's GPT2LMHeadModel, with or without the prefix `transformer.`. Its Conv1D matrices
// are [in, out], so they are transposed.
extern const NameTable kGpt2Conv1dNames;

// State dictionaries of nanoGPT and minGPT (old and new versions) and of their descendants. Their
// nn.Linear matrices are [out, in]. Names begin with `transformer.h.N` or with `blocks.N` and
// `tok_emb`. torch.compile adds the prefix `_orig_mod.`, DistributedDataParallel adds `module.`.
extern const NameTable kGpt2LinearNames;

}  // namespace limpid
