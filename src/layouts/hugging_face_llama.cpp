#include "layouts/hugging_face_llama.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "checkpoint/byte_reader.h"
#include "layouts/hugging_face_rope.h"

namespace limpid {
namespace {

constexpr std::array kRules = {
    NameRule{"model.embed_tokens.weight", "token_embd.weight"},
    NameRule{"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    NameRule{"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    NameRule{"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    NameRule{"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    NameRule{"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    NameRule{"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    NameRule{"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
    NameRule{"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    NameRule{"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
    NameRule{"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    NameRule{"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    NameRule{"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    NameRule{"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    NameRule{"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    NameRule{"model.layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias"},
    NameRule{"model.layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias"},
    NameRule{"model.layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias"},
    NameRule{"model.norm.weight", "output_norm.weight"},
    NameRule{"lm_head.weight", "output.weight"},
};
// Tables of angles that older versions of `transformers` saved.
constexpr std::array<std::string_view, 2> kLeft = {"model.layers.{}.self_attn.rotary_emb.inv_freq",
                                                   "model.rotary_emb.inv_freq"};

// What a checkpoint must hold besides the tensors that every relative has, and what it may not.
struct Parts {
  bool tied = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
};

// Sets keys with the types that GGUF's writers give them, so that both layouts hold the same value.
class Keys {
 public:
  Keys(Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}
  void size(std::string_view name, int64_t value) { set(name, {value, "u32"}); }
  void number(std::string_view name, double value) {
    set(name, {double{static_cast<float>(value)}, "f32"});
  }

 private:
  void set(std::string_view name, MetadataValue value) {
    metadata_.set(prefix_ + std::string(name), std::move(value));
  }
  Metadata& metadata_;
  std::string prefix_;
};

bool is_null(SpecReader& config, std::string_view name) {
  const std::vector<std::string>* nulls = config.strings("(null)");
  return nulls != nullptr && std::ranges::find(*nulls, name) != nulls->end();
}

// How far back a position sees: every layer must see the whole context.
void check_window(SpecReader& config, std::string_view type, int64_t n_layers, int64_t n_ctx) {
  const bool qwen = type == "qwen2" || type == "qwen3";
  const bool used = !qwen || config.flag_or("use_sliding_window", false);
  if (!qwen) config.ignore("use_sliding_window");
  if (!qwen) config.ignore("max_window_layers");
  // transformers gives Mistral and Qwen this window when the key is not there at all.
  const bool absent = !config.contains("sliding_window") && !is_null(config, "sliding_window");
  const int64_t otherwise = absent && (qwen || type == "mistral") ? 4096 : INT64_MAX;
  const int64_t window = config.size_or("sliding_window", otherwise, INT64_MAX);
  const int64_t n_full = qwen ? config.count_or("max_window_layers", 28, INT64_MAX) : 0;
  const std::vector<std::string>* types = config.strings("layer_types");
  for (size_t i = 0; types != nullptr && i < types->size(); ++i) {
    const std::string& layer = (*types)[i];
    if (layer == "full_attention" || (layer == "sliding_attention" && window >= n_ctx)) continue;
    config.refuse("layer_types",
                  fmt::format("has `{}`; Limpid knows full_attention only", printable(layer)));
  }
  if (types != nullptr && static_cast<int64_t>(types->size()) != n_layers)
    config.fail("layer_types",
                fmt::format("has {} entries for {} layers", types->size(), n_layers));
  const bool slides = used && window < n_ctx && (types == nullptr ? n_full < n_layers : !qwen);
  if (!slides) return;
  config.refuse("sliding_window",
                fmt::format("is {}, less than the context of {}: attention within a window is not "
                            "implemented",
                            window, n_ctx));
}

int64_t read_kv_heads(SpecReader& config, std::string_view type, int64_t n_heads) {
  const bool stated = config.contains("num_key_value_heads") ||
                      is_null(config, "num_key_value_heads") || type == "llama";
  if (!stated) config.fail("num_key_value_heads", "is missing; the model cannot be run without it");
  return config.size_or("num_key_value_heads", n_heads, n_heads);
}

int64_t read_head_dim(SpecReader& config, std::string_view type, int64_t d_model, int64_t n_heads) {
  constexpr int64_t kDefault = 128;  // of transformers for Qwen3 and ERNIE 4.5
  if (type == "qwen3" || (type == "ernie4_5" && !is_null(config, "head_dim")))
    return config.size_or("head_dim", kDefault, kLargestSize);
  if (!config.contains("head_dim") && d_model % n_heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("{} does not divide hidden_size {}, and there is "
                            "no head_dim",
                            n_heads, d_model));
  }
  return config.size_or("head_dim", d_model / n_heads, kLargestSize);
}

void read_biases(SpecReader& config, const HuggingFaceFamily& family, Parts& parts) {
  const std::string_view type = family.model_type;
  parts.qk_norm = type == "qwen3";
  if (!family.bias_key.empty()) {
    parts.qkv_bias = parts.o_bias = parts.mlp_bias = config.flag_or(family.bias_key, false);
    return;
  }
  if (type == "qwen2") {
    parts.qkv_bias = true;  // always; a key that says otherwise is not read by transformers either
    config.ignore("attention_bias");
  } else if (type == "mistral") {
    config.require_neutral("attention_bias", 0);
  } else {
    parts.qkv_bias = parts.o_bias = config.flag_or("attention_bias", false);
  }
  if (type == "llama") {
    parts.mlp_bias = config.flag_or("mlp_bias", false);
  } else {
    config.require_neutral("mlp_bias", 0);
  }
}

void check_presence(const Checkpoint& checkpoint, int64_t n_layers, std::string_view part,
                    bool expected, std::string_view why) {
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string ours = fmt::format("blk.{}.{}", i, part);
    if ((checkpoint.find(ours) != nullptr) == expected) continue;
    throw FormatError(checkpoint.path, FormatError::kNoOffset,
                      their_name(kHuggingFaceLlamaNames, ours).value_or(ours),
                      fmt::format("{}, but {}", expected ? "is missing" : "is there", why));
  }
}

void check_parts(const Checkpoint& checkpoint, int64_t n_layers, const Parts& parts,
                 std::string_view class_name) {
  const auto check = [&](std::string_view part, bool expected, std::string_view key) {
    const std::string why = fmt::format("{} of a {} is {}", key, class_name, expected);
    check_presence(checkpoint, n_layers, part, expected, why);
  };
  for (const char* part : {"attn_q.bias", "attn_k.bias", "attn_v.bias"})
    check(part, parts.qkv_bias, "attention_bias");
  check("attn_output.bias", parts.o_bias, "attention_bias");
  for (const char* part : {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"})
    check(part, parts.mlp_bias, "mlp_bias");
  for (const char* part : {"attn_q_norm.weight", "attn_k_norm.weight"})
    check(part, parts.qk_norm, "the norm of Q and K");
}

// The output matrix is the embedding when the configuration says so, whatever else is there.
void settle_output(Checkpoint& checkpoint, bool tied) {
  const bool there = checkpoint.find("output.weight") != nullptr;
  if (!tied && !there) {
    throw FormatError(checkpoint.path, FormatError::kNoOffset, "lm_head.weight",
                      "is missing, and tie_word_embeddings is not true");
  }
  if (!tied || !there) return;
  checkpoint.tensors.erase("output.weight");
  checkpoint.made.erase("output.weight");
  std::erase(checkpoint.tensor_order, "output.weight");
  checkpoint.left.push_back("lm_head.weight");
}

}  // namespace

constinit const NameTable kHuggingFaceLlamaNames{kRules, kLeft, {}};

FinishCheckpoint read_hugging_face_llama(SpecReader& config, const HuggingFaceFamily& family,
                                         Metadata& canonical) {
  const std::string_view type = family.model_type;
  Keys keys(canonical, family.architecture);
  const int64_t d_model = config.required_size("hidden_size", kLargestSize);
  const int64_t n_layers = config.required_size("num_hidden_layers", kMostLayers);
  const int64_t n_heads = config.required_size("num_attention_heads", kLargestSize);
  const int64_t n_ctx = config.required_size("max_position_embeddings", kLargestSize);
  const int64_t head_dim = read_head_dim(config, type, d_model, n_heads);
  keys.size("block_count", n_layers);
  keys.size("context_length", n_ctx);
  keys.size("embedding_length", d_model);
  keys.size("feed_forward_length", config.required_size("intermediate_size", kLargestSize));
  keys.size("vocab_size", config.required_size("vocab_size", kLargestSize));
  keys.size("attention.head_count", n_heads);
  keys.size("attention.head_count_kv", read_kv_heads(config, type, n_heads));
  keys.size("attention.key_length", head_dim);
  keys.size("attention.value_length", head_dim);
  const bool is_ernie = type == "ernie4_5";  // whose defaults are others
  keys.number("attention.layer_norm_rms_epsilon",
              config.positive_or("rms_norm_eps", is_ernie ? 1e-5 : 1e-6));
  if (is_ernie && !config.contains("rope_theta") && !config.contains("rope_parameters.rope_theta"))
    config.fail("rope_theta", "is missing; the model cannot be run without it");

  Parts parts;
  const HuggingFaceRope rope = read_hugging_face_rope(config, head_dim, n_ctx);
  keys.size("rope.dimension_count", rope.n_rot);
  keys.number("rope.freq_base", rope.base);
  if (rope.scaling.kind != RopeScalingKind::kNone)
    set_rope_scaling_keys(canonical, family.architecture, rope.scaling);
  const std::string activation = config.string_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    config.refuse("hidden_act", fmt::format("is `{}`; Limpid runs only silu in this architecture",
                                            printable(activation)));
  }
  config.require_neutral("rope_interleaved", 0);
  check_window(config, type, n_layers, n_ctx);
  read_biases(config, family, parts);
  parts.tied = config.flag_or("tie_word_embeddings", is_ernie);
  return [n_layers, parts, class_name = family.class_name](Checkpoint& checkpoint) {
    settle_output(checkpoint, parts.tied);
    check_parts(checkpoint, n_layers, parts, class_name);
  };
}

}  // namespace limpid
