// The models that Limpid runs, and what distinguishes each from its relatives: one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/row_order.h"

namespace limpid {

// Models of one family have the same keys and tensors in GGUF's vocabulary.
enum class Family : uint8_t {
  kLlama,  // RMSNorm, rotary positions, gated MLP
  kGpt2,   // LayerNorm, learned positions, MLP of two matrices
};

// Tensors that some models of the Llama family have.
struct OptionalParts {
  bool tied = false;  // no output matrix of its own
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
};

// A class of `transformers`. Where the comment names a default, `transformers` takes this value
// when config.json lacks the key.
struct ModelClass {
  std::string_view class_name;    // of config.json's `architectures`
  std::string_view model_type;    // of the same file
  std::string_view architecture;  // general.architecture of GGUF; several classes may share one
  Family family = Family::kLlama;

  // Of the rows of Q and K.
  RowOrder row_order = RowOrder::kHalfSplit;  // in Hugging Face folders
  RowOrder gguf_row_order = RowOrder::kHalfSplit;

  // Biases: keys of config.json that turn them on; "": the class never has them.
  std::string_view attention_bias_key = {};  // of Q, K, V and the output
  std::string_view mlp_bias_key = {};
  bool always_has_qkv_bias = false;
  bool has_qk_norm = false;

  bool requires_kv_heads = true;       // num_key_value_heads
  bool requires_rope_base = false;     // rope_theta
  int64_t head_dim = 0;                // default; 0: hidden_size / num_attention_heads
  bool divides_null_head_dim = false;  // a head_dim of null is that quotient too
  double norm_eps = 1e-6;              // default of rms_norm_eps
  bool tied = false;                   // default of tie_word_embeddings
  int64_t sliding_window = 0;          // default; 0: none
  // Whether use_sliding_window and max_window_layers say which layers have a window.
  bool has_window_layers = false;
};

std::span<const ModelClass> model_classes();
// The first class of that GGUF architecture; nullptr when there is none.
const ModelClass* find_model_class(std::string_view architecture);

// A tensor of a block that only some models have.
struct OptionalTensor {
  std::string_view name;      // "attn_q.bias", below "blk.N."
  bool OptionalParts::*part;  // what it belongs to
};
std::span<const OptionalTensor> optional_tensors();
// The part that the tensor of this name ("blk.0.attn_q.bias") belongs to; nothing for a tensor that
// every model has.
std::optional<bool OptionalParts::*> optional_part(std::string_view tensor);

// Whether models of a class have a part.
struct Presence {
  enum class When : uint8_t { kNever, kIfConfigured, kAlways };
  When when = When::kNever;
  std::string_view key = {};  // of config.json, for kIfConfigured
};
Presence presence_of(bool OptionalParts::*part, const ModelClass& model_class);

}  // namespace limpid
