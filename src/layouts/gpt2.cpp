#include "layouts/gpt2.h"

#include <array>
#include <utility>

#include "checkpoint/metadata.h"

namespace limpid {
namespace {

// Functions that are equal up to rounding share one canonical name. gelu_fast has the constants of
// gelu_new with fewer digits.
constexpr std::pair<std::string_view, const char*> kActivations[] = {
    {"gelu_new", "gelu_tanh"},  {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_fast", "gelu_tanh"}, {"gelu_tanh", "gelu_tanh"},
    {"gelu", "gelu_erf"},       {"gelu_python", "gelu_erf"},
    {"gelu_erf", "gelu_erf"},   {"relu", "relu"},
    {"silu", "silu"},           {"swish", "silu"},
};

// The value of hidden_activation for a function's name in torch or transformers; nothing for an
// unknown name.
std::optional<std::string> canonical_activation(std::string_view name) {
  for (const auto& [theirs, ours] : kActivations) {
    if (theirs == name) return ours;
  }
  return std::nullopt;
}

// Reads the context, which has several names. Throws FormatError when two of the names are present
// with different values.
std::optional<int64_t> read_context(SpecReader& config) {
  constexpr std::array<std::string_view, 3> kNames = {"n_positions", "n_ctx", "block_size"};
  std::optional<int64_t> found;
  for (const std::string_view name : kNames) {
    const std::optional<int64_t> value = config.size(name, kLargestSize);
    if (value && found && *value != *found)
      config.fail(name, "is {}, but {} is {}", *value, kNames[0], *found);
    if (value) found = value;
  }
  return found;
}

constexpr TensorTransform kTransposed = TensorTransform::kTransposed;

constexpr std::array kConv1dRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"h.{}.ln_1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.c_attn.*", "blk.{}.attn_qkv.*", kTransposed},
    NameRule{"h.{}.attn.c_proj.*", "blk.{}.attn_output.*", kTransposed},
    NameRule{"h.{}.ln_2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.c_fc.*", "blk.{}.ffn_up.*", kTransposed},
    NameRule{"h.{}.mlp.c_proj.*", "blk.{}.ffn_down.*", kTransposed},
    NameRule{"ln_f.*", "output_norm.*"},
    NameRule{"lm_head.weight", "output.weight"},
};

constexpr std::array kLinearRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"tok_emb.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"pos_emb.weight", "position_embd.weight"},
    NameRule{"pos_emb", "position_embd.weight", TensorTransform::kFirstOfOne},
    // nanoGPT, minGPT since 2022
    NameRule{"h.{}.ln_1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.c_attn.*", "blk.{}.attn_qkv.*"},
    NameRule{"h.{}.attn.c_proj.*", "blk.{}.attn_output.*"},
    NameRule{"h.{}.ln_2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.c_fc.*", "blk.{}.ffn_up.*"},
    NameRule{"h.{}.mlp.c_proj.*", "blk.{}.ffn_down.*"},
    // minGPT of 2020: separate Q, K and V; the MLP is a Sequential
    NameRule{"h.{}.ln1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.query.*", "blk.{}.attn_q.*"},
    NameRule{"h.{}.attn.key.*", "blk.{}.attn_k.*"},
    NameRule{"h.{}.attn.value.*", "blk.{}.attn_v.*"},
    NameRule{"h.{}.attn.proj.*", "blk.{}.attn_output.*"},
    NameRule{"h.{}.ln2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.0.*", "blk.{}.ffn_up.*"},
    NameRule{"h.{}.mlp.2.*", "blk.{}.ffn_down.*"},
    NameRule{"ln_f.*", "output_norm.*"},
    NameRule{"lm_head.weight", "output.weight"},
    NameRule{"head.weight", "output.weight"},
};

// Causal masks, and the number that represents minus infinity in them.
constexpr std::array kBuffers = {
    UnusedRule{"h.{}.attn.bias", UnusedRule::Kind::kMask},
    UnusedRule{"h.{}.attn.mask", UnusedRule::Kind::kMask},
    UnusedRule{"h.{}.attn.masked_bias", UnusedRule::Kind::kNumber},
};
constexpr std::array<OptionalPrefix, 3> kPrefixes = {
    {{"_orig_mod."}, {"module."}, {"transformer."}}};
// Some scripts name the list of blocks `blocks` and not `h`.
constexpr std::array<OptionalPrefix, 4> kLinearPrefixes = {
    {{"_orig_mod."}, {"module."}, {"transformer."}, {"blocks.", "h."}}};

}  // namespace

void read_gpt2_config(SpecReader& config, Gpt2Config& into) {
  const auto take = [](auto& value, const auto& stated) {
    if (!value) value = stated;
  };
  take(into.n_layers, config.size("n_layer", kMostLayers));
  take(into.n_heads, config.size("n_head", kLargestSize));
  take(into.d_model, config.size("n_embd", kLargestSize));
  take(into.d_ff, config.size("n_inner", kLargestSize));
  take(into.n_ctx, read_context(config));
  take(into.vocab_size, config.size("vocab_size", kLargestSize));
  const std::string activation = config.string_or("activation_function", "");
  if (!activation.empty()) {
    const auto known = canonical_activation(activation);
    if (!known) {
      config.refuse("activation_function",
                    "is `{}` (known: gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu)",
                    activation);
    }
    take(into.activation, known);
  }
  if (config.contains("layer_norm_epsilon"))
    take(into.norm_eps, config.positive_or("layer_norm_epsilon", 1e-5));
  config.flag_or("reorder_and_upcast_attn", false);
  for (const auto& [name, value] :
       {std::pair{"tie_word_embeddings", &into.tied}, std::pair{"bias", &into.has_biases},
        std::pair{"scale_attn_weights", &into.scale_by_head_dim},
        std::pair{"scale_attn_by_inverse_layer_idx", &into.scale_by_inverse_layer}}) {
    if (config.contains(name)) take(*value, config.flag_or(name, false));
  }
}

OptionalParts read_hugging_face_gpt2(SpecReader& config, const ModelClass& model_class,
                                     Metadata& canonical) {
  Gpt2Config read;
  read_gpt2_config(config, read);
  for (const auto& [name, size] :
       {std::pair{"n_layer", read.n_layers}, std::pair{"n_head", read.n_heads},
        std::pair{"n_embd", read.d_model}, std::pair{"n_positions", read.n_ctx},
        std::pair{"vocab_size", read.vocab_size}}) {
    if (!size) config.fail(name, "is missing; the model cannot be run without it");
  }
  if (read.has_biases) config.refuse("bias", "is not a key of GPT-2 in transformers");
  if (!read.activation) read.activation = "gelu_tanh";
  if (!read.d_ff) read.d_ff = 4 * *read.d_model;
  ignore_summary(config);
  set_gpt2_keys(read, canonical);
  return {.tied = read.tied.value_or(model_class.tied)};
}

void ignore_summary(SpecReader& config) {
  for (const char* name : {"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                           "summary_type", "summary_use_proj"}) {
    config.ignore(name);
  }
}

void set_gpt2_keys(const Gpt2Config& config, Metadata& canonical) {
  canonical.set("general.architecture", {std::string("gpt2"), "string"});
  KeyWriter keys(canonical, "gpt2.");
  keys.integer("block_count", config.n_layers.value());
  keys.integer("context_length", config.n_ctx.value());
  keys.integer("embedding_length", config.d_model.value());
  keys.integer("feed_forward_length", config.d_ff.value());
  keys.integer("vocab_size", config.vocab_size.value());
  keys.integer("attention.head_count", config.n_heads.value());
  keys.number("attention.layer_norm_epsilon", config.norm_eps.value_or(1e-5));
  // Limpid's own keys are written only when they differ from the default. Other readers can then
  // open the remaining files.
  const std::string& activation = config.activation.value();
  if (activation != "gelu_tanh") keys.string("hidden_activation", activation);
  if (!config.scale_by_head_dim.value_or(true)) keys.number("attention.scale", 1);
  if (config.scale_by_inverse_layer.value_or(false))
    keys.flag("attention.scale_by_inverse_layer", true);
}

constinit const NameTable kGpt2Conv1dNames{kConv1dRules, kBuffers, kPrefixes};
constinit const NameTable kGpt2LinearNames{kLinearRules, kBuffers, kLinearPrefixes};

}  // namespace limpid
