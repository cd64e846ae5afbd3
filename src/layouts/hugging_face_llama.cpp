#include "layouts/hugging_face_llama.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/metadata.h"
#include "layouts/rope_scaling.h"

namespace limpid {
namespace {

constexpr std::array kRules = {
    NameRule{"model.embed_tokens.weight", "token_embd.weight"},
    NameRule{"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    NameRule{"model.layers.{}.self_attn.q_proj.*", "blk.{}.attn_q.*"},
    NameRule{"model.layers.{}.self_attn.k_proj.*", "blk.{}.attn_k.*"},
    NameRule{"model.layers.{}.self_attn.v_proj.*", "blk.{}.attn_v.*"},
    NameRule{"model.layers.{}.self_attn.o_proj.*", "blk.{}.attn_output.*"},
    NameRule{"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    NameRule{"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    NameRule{"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"model.layers.{}.mlp.gate_proj.*", "blk.{}.ffn_gate.*"},
    NameRule{"model.layers.{}.mlp.up_proj.*", "blk.{}.ffn_up.*"},
    NameRule{"model.layers.{}.mlp.down_proj.*", "blk.{}.ffn_down.*"},
    NameRule{"model.norm.weight", "output_norm.weight"},
    NameRule{"lm_head.weight", "output.weight"},
};
// Tables of rotation angles that older versions of `transformers` saved. Limpid computes them from
// the configuration.
constexpr std::array<UnusedRule, 2> kUnused = {
    {{"model.layers.{}.self_attn.rotary_emb.inv_freq"}, {"model.rotary_emb.inv_freq"}}};

// transformers saves a model without its output head, as embedding models are, without this prefix.
constexpr std::array kPrefixes = {OptionalPrefix{"", "model."}};

// The JSON reader lists keys whose value is null under "(null)". A null differs from an absent key:
// transformers uses the class's default only for an absent key.
bool is_null(SpecReader& config, std::string_view name) {
  const std::vector<std::string>* nulls = config.strings("(null)");
  return nulls != nullptr && std::ranges::find(*nulls, name) != nulls->end();
}

// Refuses a model with sliding-window attention: every layer must attend to the whole context. A
// window of at least `n_ctx` tokens has no effect and is accepted.
void check_window(SpecReader& config, const ModelClass& model_class, int64_t n_layers,
                  int64_t n_ctx) {
  const bool by_layer = model_class.has_window_layers;
  const bool used = config.flag_or("use_sliding_window", !by_layer) || !by_layer;
  const bool absent = !config.contains("sliding_window") && !is_null(config, "sliding_window");
  const int64_t otherwise =
      absent && model_class.sliding_window > 0 ? model_class.sliding_window : INT64_MAX;
  const int64_t window = config.size_or("sliding_window", otherwise, INT64_MAX);
  // Layers before this one attend to the whole context.
  const int64_t max_window_layers = config.count_or("max_window_layers", 28, INT64_MAX);
  const int64_t n_full = by_layer ? max_window_layers : 0;
  const std::vector<std::string>* types = config.strings("layer_types");
  for (size_t i = 0; types != nullptr && i < types->size(); ++i) {
    const std::string& layer = (*types)[i];
    if (layer == "full_attention" || (layer == "sliding_attention" && window >= n_ctx)) continue;
    config.refuse("layer_types", "has `{}`; Limpid supports only full_attention", printable(layer));
  }
  if (types != nullptr && static_cast<int64_t>(types->size()) != n_layers)
    config.fail("layer_types", "has {} entries for {} layers", types->size(), n_layers);
  // layer_types, which was checked above, takes the place of max_window_layers.
  const bool slides = used && window < n_ctx && (types == nullptr ? n_full < n_layers : !by_layer);
  if (!slides) return;
  config.refuse("sliding_window",
                "is {}, less than the context of {}: attention within a window is not implemented",
                window, n_ctx);
}

// null means num_attention_heads. Some classes require the key.
int64_t read_kv_heads(SpecReader& config, const ModelClass& model_class, int64_t n_heads) {
  const bool stated =
      config.contains("num_key_value_heads") || is_null(config, "num_key_value_heads");
  if (!stated && model_class.requires_kv_heads)
    config.fail("num_key_value_heads", "is missing; the model cannot be run without it");
  return config.size_or("num_key_value_heads", n_heads, n_heads);
}

// head_dim is explicit, or the default of the class, or hidden_size / num_attention_heads.
int64_t read_head_dim(SpecReader& config, const ModelClass& model_class, int64_t d_model,
                      int64_t n_heads) {
  const bool is_divided = model_class.divides_null_head_dim && is_null(config, "head_dim");
  const bool has_default = model_class.head_dim > 0 && !is_divided;
  if (has_default) return config.size_or("head_dim", model_class.head_dim, kLargestSize);
  if (!config.contains("head_dim") && d_model % n_heads != 0) {
    config.fail("num_attention_heads", "{} does not divide hidden_size {}, and head_dim is missing",
                n_heads, d_model);
  }
  return config.size_or("head_dim", d_model / n_heads, kLargestSize);
}

// Reads which biases and norms the model has, by the rules in the table of classes.
OptionalParts read_parts(SpecReader& config, const ModelClass& model_class) {
  // A key that belongs to another class must be off: transformers does not read the key.
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    if (key == "attention_bias" && model_class.always_has_qkv_bias) {
      config.ignore(key);
    } else if (key != model_class.attention_bias_key && key != model_class.mlp_bias_key) {
      config.require_neutral(key, 0);
    }
  }
  const auto has = [&](bool OptionalParts::*part) {
    const Presence presence = presence_of(part, model_class);
    return presence.when == Presence::When::kAlways ||
           (presence.when == Presence::When::kIfConfigured && config.flag_or(presence.key, false));
  };
  OptionalParts parts;
  for (const OptionalTensor& optional : optional_tensors())
    parts.*optional.part = has(optional.part);
  parts.tied = config.flag_or("tie_word_embeddings", model_class.tied);
  return parts;
}

// Reads `rope_type`, or the older `type`. If both are present they must agree.
std::string read_type(SpecReader& config, const std::string& block) {
  const std::string older = config.string_or(block + "type", "");
  const std::string type = config.string_or(block + "rope_type", older);
  if (!older.empty() && older != type)
    config.fail(block + "type", "differs from rope_type beside it");
  return type.empty() ? "default" : type;
}

// Reads the parameters of llama3's scaling. All are required except the original context, for which
// transformers uses max_position_embeddings.
RopeScaling read_llama3(SpecReader& config, const std::string& block, int64_t n_ctx) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.factor = config.required_positive(block + "factor");
  scaling.low_freq_factor = config.required_positive(block + "low_freq_factor");
  scaling.high_freq_factor = config.required_positive(block + "high_freq_factor");
  const std::string original = "original_max_position_embeddings";
  scaling.original_context = config.size_or(block + original, n_ctx, kLargestSize);
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    config.fail(block + "high_freq_factor", "is not above low_freq_factor");
  return scaling;
}

// The rotary part of config.json.
struct HuggingFaceRope {
  int64_t n_rot = 0;
  double base = 10000;
  RopeScaling scaling;
};

// Reads rope_theta, partial_rotary_factor and rope_scaling (`rope_type`, or the older key `type`).
// transformers 5 keeps all of them in one block, `rope_parameters`, which is read too; its values
// take precedence over the same keys at the top level. Throws UnsupportedError for a type other
// than default, linear and llama3.
HuggingFaceRope read_hugging_face_rope(SpecReader& config, int64_t head_dim, int64_t n_ctx) {
  const bool newer = config.contains("rope_parameters.rope_type") ||
                     config.contains("rope_parameters.rope_theta") ||
                     config.contains("rope_parameters.type");
  const std::string block = newer ? "rope_parameters." : "rope_scaling.";
  if (newer && (config.contains("rope_scaling.rope_type") || config.contains("rope_scaling.type")))
    config.fail("rope_scaling", "is present beside rope_parameters; remove one of them");
  HuggingFaceRope rope;
  const double outer_base = config.positive_or("rope_theta", 10000);
  rope.base = config.positive_or(block + "rope_theta", outer_base);
  const std::string inner = block + "partial_rotary_factor";
  const double outer_part = config.positive_or("partial_rotary_factor", 1);
  const double part = config.positive_or(inner, outer_part);
  const std::string name = config.contains(inner) ? inner : "partial_rotary_factor";
  if (part > 1) config.fail(name, "is {}, at most 1", part);
  rope.n_rot = static_cast<int64_t>(static_cast<double>(head_dim) * part);
  if (rope.n_rot < 2 || rope.n_rot % 2 != 0) {
    if (part == 1) config.fail("head_dim", "is {}, expected an even number", head_dim);
    config.fail(name, "leaves {} of {} elements to rotate, expected an even number", rope.n_rot,
                head_dim);
  }
  const std::string type = read_type(config, block);
  if (type == "linear") {
    rope.scaling.kind = RopeScalingKind::kLinear;
    rope.scaling.factor = config.required_positive(block + "factor");
  } else if (type == "llama3") {
    rope.scaling = read_llama3(config, block, n_ctx);
  } else if (type != "default") {
    config.refuse(block + "rope_type", "is `{}`; Limpid supports default, linear and llama3",
                  printable(type));
  } else {
    config.require_neutral(block + "factor", 1);
  }
  return rope;
}

}  // namespace

constinit const NameTable kHuggingFaceLlamaNames{kRules, kUnused, kPrefixes};

OptionalParts read_hugging_face_llama(SpecReader& config, const ModelClass& model_class,
                                      Metadata& canonical) {
  KeyWriter keys(canonical, fmt::format("{}.", model_class.architecture));
  const int64_t d_model = config.required_size("hidden_size", kLargestSize);
  const int64_t n_layers = config.required_size("num_hidden_layers", kMostLayers);
  const int64_t n_heads = config.required_size("num_attention_heads", kLargestSize);
  const int64_t n_ctx = config.required_size("max_position_embeddings", kLargestSize);
  const int64_t head_dim = read_head_dim(config, model_class, d_model, n_heads);
  keys.integer("block_count", n_layers);
  keys.integer("context_length", n_ctx);
  keys.integer("embedding_length", d_model);
  keys.integer("feed_forward_length", config.required_size("intermediate_size", kLargestSize));
  keys.integer("vocab_size", config.required_size("vocab_size", kLargestSize));
  keys.integer("attention.head_count", n_heads);
  keys.integer("attention.head_count_kv", read_kv_heads(config, model_class, n_heads));
  keys.integer("attention.key_length", head_dim);
  keys.integer("attention.value_length", head_dim);
  keys.number("attention.layer_norm_rms_epsilon",
              config.positive_or("rms_norm_eps", model_class.norm_eps));
  const bool has_rope_base =
      config.contains("rope_theta") || config.contains("rope_parameters.rope_theta");
  if (model_class.requires_rope_base && !has_rope_base)
    config.fail("rope_theta", "is missing; the model cannot be run without it");
  const HuggingFaceRope rope = read_hugging_face_rope(config, head_dim, n_ctx);
  keys.integer("rope.dimension_count", rope.n_rot);
  keys.number("rope.freq_base", rope.base);
  if (rope.scaling.kind != RopeScalingKind::kNone)
    set_rope_scaling_keys(canonical, model_class.architecture, rope.scaling);
  const std::string activation = config.string_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    config.refuse("hidden_act", "is `{}`; Limpid runs only silu in this architecture",
                  printable(activation));
  }
  config.require_neutral("rope_interleaved", 0);
  config.require_neutral("use_mrope", 0);
  check_window(config, model_class, n_layers, n_ctx);
  return read_parts(config, model_class);
}

}  // namespace limpid
