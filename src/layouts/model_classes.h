// The table of the models that Limpid runs. One row per class of `transformers` lists what
// distinguishes that class from related ones, such as biases, norms and the order of the Q and K
// rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "tensor/row_order.h"

namespace limpid {

// A family is a set of models with the same keys and tensors in GGUF's vocabulary. Each has one
// reader in src/model.
enum class Family : uint8_t {
  kLlama,  // RMSNorm, rotary positions, gated MLP
  kGpt2,   // LayerNorm, learned positions, MLP of two matrices
};

// What models of the Llama family have or lack. All but `tied` are tensors (optional_tensors()).
struct OptionalParts {
  bool tied = false;  // the output matrix is the token embedding
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
};

// The biases that another program can read in an architecture.
enum class KnownBiases : uint8_t { kNone, kQkv, kAll };

// A class of `transformers`. A comment with the word "default" gives the value that `transformers`
// uses when config.json lacks the key.
struct ModelClass {
  std::string_view class_name;    // of config.json's `architectures`
  std::string_view model_type;    // of the same file
  std::string_view architecture;  // general.architecture of GGUF; several classes may share one
  Family family = Family::kLlama;

  // The order of the rows of Q and K.
  RowOrder row_order = RowOrder::kHalfSplit;  // in Hugging Face folders
  RowOrder gguf_row_order = RowOrder::kHalfSplit;

  // Keys of config.json that turn biases on. "": no key does; the class has no such biases, or,
  // with always_has_qkv_bias, always those of Q, K and V.
  std::string_view attention_bias_key = {};  // for Q, K, V and the output
  std::string_view mlp_bias_key = {};
  bool always_has_qkv_bias = false;
  bool has_qk_norm = false;

  bool requires_kv_heads = true;       // config.json must have num_key_value_heads
  bool requires_rope_base = false;     // … and rope_theta
  int64_t head_dim = 0;                // default; 0: hidden_size / num_attention_heads
  bool divides_null_head_dim = false;  // a head_dim of null means that quotient too
  double norm_eps = 1e-6;              // default of rms_norm_eps
  bool tied = false;                   // default of tie_word_embeddings
  int64_t sliding_window = 0;          // default; 0: none
  // True if use_sliding_window and max_window_layers select the layers that have a window.
  bool has_window_layers = false;

  // Adapters in PEFT's layout.
  bool stores_in_out = false;           // matrices are [in, out], not [out, in]
  std::string_view module_prefix = {};  // of the names of modules
  // The modules that PEFT adapts by default, separated by commas.
  std::string_view adapted_modules = "q_proj,v_proj";

  // What other programs read.
  KnownBiases biases_in_llama_cpp = KnownBiases::kQkv;
  bool has_meta_layout = false;  // params.json and consolidated.NN.pth
};

std::span<const ModelClass> model_classes();
// Returns the first class with this GGUF architecture, or nullptr.
const ModelClass* find_model_class(std::string_view architecture);
// The same for a checkpoint in GGUF's vocabulary. Throws FormatError if it does not name its
// architecture, and UnsupportedError, which lists the architectures, for an unknown architecture.
const ModelClass& model_class_of(const Checkpoint& canonical);

// A tensor of a block that only some models have.
struct OptionalTensor {
  std::string_view name;      // "attn_q.bias", below "blk.N."
  bool OptionalParts::*part;  // the part that the tensor belongs to
};
std::span<const OptionalTensor> optional_tensors();
// Returns the part to which the tensor ("blk.0.attn_q.bias") belongs, or nothing for a tensor that
// every model has.
std::optional<bool OptionalParts::*> optional_part(std::string_view tensor);

// Says whether the models of a class have a part other than `tied`: never, always, or when a key of
// config.json is true.
struct Presence {
  enum class When : uint8_t { kNever, kIfConfigured, kAlways };
  When when = When::kNever;
  std::string_view key = {};  // the key of config.json, for kIfConfigured
};
Presence presence_of(bool OptionalParts::*part, const ModelClass& model_class);

}  // namespace limpid
