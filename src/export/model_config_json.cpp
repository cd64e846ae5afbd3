#include "export/model_config_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/parse_number.h"
#include "layouts/hugging_face.h"
#include "layouts/model_classes.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// Reads a number below <architecture>.rope.scaling.
std::optional<double> scaling_number(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                     std::string_view name) {
  return checkpoint.metadata.number(fmt::format("{}.rope.scaling.{}", spec.architecture, name));
}

// The value of `rope_scaling` in config.json: null, linear or llama3. A table of factors without a
// rule cannot be expressed.
Json rope_scaling(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  if (spec.rope.scaling == "none") return nullptr;
  if (spec.rope.scaling == "linear") {
    return {{"rope_type", "linear"}, {"factor", shortest_decimal(spec.rope.scaling_factor)}};
  }
  const auto low = scaling_number(checkpoint, spec, "low_freq_factor");
  LIMPID_CHECK(UnsupportedError, spec.rope.scaling == "llama3" && low.has_value(),
               "{}: the rotary frequencies are scaled by a table (rope_freqs.weight), which this "
               "layout cannot store; give the scaling as OpenOptions::rope_scaling, for example "
               "llama3:32,1,4,8192",
               checkpoint.path);
  const auto context = scaling_number(checkpoint, spec, "original_context_length").value_or(8192);
  return {{"rope_type", "llama3"},
          {"factor", shortest_decimal(*scaling_number(checkpoint, spec, "factor"))},
          {"low_freq_factor", shortest_decimal(*low)},
          {"high_freq_factor",
           shortest_decimal(scaling_number(checkpoint, spec, "high_freq_factor").value_or(4))},
          {"original_max_position_embeddings", static_cast<int64_t>(context)}};
}

// The tokens that the keys of a GGUF file state as the end of an answer.
std::vector<int64_t> ends_by_key(const Checkpoint& checkpoint, const TokenizerSpec& tokenizer) {
  std::vector<int64_t> ends;
  if (!checkpoint.metadata.contains("tokenizer.ggml.model")) return ends;
  for (const auto& id : {tokenizer.eos, tokenizer.eot, tokenizer.eom}) {
    if (id && std::ranges::find(ends, *id) == ends.end()) ends.push_back(*id);
  }
  return ends;
}

// Sets the ids of the tokens that begin and end a text. There may be several that end it: those
// that the model states, or else those that the tokenizer's names show.
void set_token_ids(Json& json, const Checkpoint& checkpoint,
                   const std::optional<TokenizerSpec>& tokenizer) {
  std::vector<int64_t> ends;
  if (tokenizer) {
    // Without these, transformers takes 50256 for a GPT-2.
    json["bos_token_id"] = json["eos_token_id"] = nullptr;
    if (tokenizer->bos) json["bos_token_id"] = *tokenizer->bos;
    if (tokenizer->pad) json["pad_token_id"] = *tokenizer->pad;
    ends = ends_by_key(checkpoint, *tokenizer);
    if (ends.empty()) ends.assign(tokenizer->stop_ids.begin(), tokenizer->stop_ids.end());
  }
  if (const auto* stated = checkpoint.metadata.integers(kStopTokenIdsKey)) ends = *stated;
  if (ends.size() == 1) {
    json["eos_token_id"] = ends.front();
  } else if (!ends.empty()) {
    json["eos_token_id"] = std::move(ends);
  }
}

// The name of GPT-2's activation in transformers.
std::string activation_name(MlpKind mlp) {
  if (mlp == MlpKind::kGeluErf) return "gelu";
  if (mlp == MlpKind::kRelu) return "relu";
  return mlp == MlpKind::kSilu ? "silu" : "gelu_new";
}

// Returns whether q . k is divided by sqrt(head_dim) or not scaled at all.
bool scales_by_head_dim(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const auto stated = checkpoint.metadata.number("gpt2.attention.scale");
  if (!stated) return true;
  const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(spec.head_dim)));
  LIMPID_CHECK(UnsupportedError, spec.attention_scale == usual || spec.attention_scale == 1,
               "{}: gpt2.attention.scale is {}, but GPT2LMHeadModel supports only {} and 1",
               checkpoint.path, spec.attention_scale, usual);
  return spec.attention_scale == usual;
}

// config.json of GPT2LMHeadModel.
Json gpt2_config(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  LIMPID_CHECK(UnsupportedError,
               spec.norm == NormKind::kLayer && spec.outer_norm == OuterNorm::kOutput,
               "{}: GPT2LMHeadModel has no RMSNorm and no norm of embeddings", checkpoint.path);
  Json json;
  json["vocab_size"] = spec.vocab_size;
  json["n_positions"] = spec.n_ctx_train;
  json["n_embd"] = spec.d_model;
  json["n_layer"] = spec.n_layers;
  json["n_head"] = spec.n_heads;
  json["n_inner"] = spec.d_ff;
  json["activation_function"] = activation_name(spec.mlp);
  json["layer_norm_epsilon"] = shortest_decimal(spec.norm_eps);
  json["scale_attn_weights"] = scales_by_head_dim(checkpoint, spec);
  json["scale_attn_by_inverse_layer_idx"] = spec.scale_by_inverse_layer;
  json["reorder_and_upcast_attn"] = false;
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) json[dropout] = 0.0;
  return json;
}

// config.json of a class of the Llama family. The keys that turn biases on follow from the tensors.
Json llama_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                  const ModelClass& model_class) {
  LIMPID_CHECK(UnsupportedError, spec.rope.n_rot == spec.head_dim,
               "{}: the model rotates {} of the {} elements of a head, which {} cannot do",
               checkpoint.path, spec.rope.n_rot, spec.head_dim, model_class.class_name);
  Json json;
  json["hidden_size"] = spec.d_model;
  json["intermediate_size"] = spec.d_ff;
  json["num_hidden_layers"] = spec.n_layers;
  json["num_attention_heads"] = spec.n_heads;
  json["num_key_value_heads"] = spec.n_kv_heads;
  json["head_dim"] = spec.head_dim;
  json["vocab_size"] = spec.vocab_size;
  json["max_position_embeddings"] = spec.n_ctx_train;
  json["rms_norm_eps"] = shortest_decimal(spec.norm_eps);
  json["rope_theta"] = shortest_decimal(spec.rope.base);
  json["rope_scaling"] = rope_scaling(checkpoint, spec);
  json["hidden_act"] = "silu";
  // completed_for_class gave all blocks the same biases, so the first block represents all.
  const auto set_bias = [&](std::string_view key, const char* tensor) {
    if (!key.empty()) json[std::string(key)] = checkpoint.find(tensor) != nullptr;
  };
  set_bias(model_class.attention_bias_key, "blk.0.attn_output.bias");
  set_bias(model_class.mlp_bias_key, "blk.0.ffn_gate.bias");
  json["attention_dropout"] = 0.0;
  return json;
}

// The only chat template, or a list of named ones.
Json chat_templates(const Metadata& metadata) {
  const std::string prefix = "tokenizer.chat_template.";
  const auto only = metadata.string("tokenizer.chat_template");
  Json named = Json::array();
  if (only) named.push_back({{"name", "default"}, {"template", *only}});
  for (const auto& [key, value] : metadata.below(prefix)) {
    if (const auto* text = std::get_if<std::string>(&value.value))
      named.push_back({{"name", key.substr(prefix.size())}, {"template", *text}});
  }
  if (only && named.size() == 1) return *only;
  return named.empty() ? Json() : named;
}

}  // namespace

// The class, the keys of the family, then the keys that all families have.
std::string hugging_face_config(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                const std::optional<TokenizerSpec>& tokenizer,
                                const std::string& dtype) {
  const ModelClass& model_class = model_class_of(checkpoint);
  Json json;
  json["architectures"] = {std::string(model_class.class_name)};
  json["model_type"] = std::string(model_class.model_type);
  json.update(spec.position == PositionKind::kRope ? llama_config(checkpoint, spec, model_class)
                                                   : gpt2_config(checkpoint, spec));
  const MetadataValue* range = checkpoint.metadata.find(kInitializerRangeKey);
  json["initializer_range"] = range != nullptr && range->is_number()
                                  ? *checkpoint.metadata.number(kInitializerRangeKey)
                                  : 0.02;
  json["use_cache"] = true;
  json["tie_word_embeddings"] = spec.tied_embeddings;
  json["torch_dtype"] = dtype;
  set_token_ids(json, checkpoint, tokenizer);
  return json.dump(2) + "\n";
}

std::string generation_config(const Checkpoint& checkpoint,
                              const std::optional<TokenizerSpec>& tokenizer) {
  Json json = Json::object();
  set_token_ids(json, checkpoint, tokenizer);
  const auto set = [&](const char* name, const char* ours) {
    const auto value = checkpoint.metadata.number(std::string("general.sampling.") + ours);
    if (value) json[name] = shortest_decimal(*value);
  };
  const auto temperature = checkpoint.metadata.number("general.sampling.temp");
  if (temperature) json["do_sample"] = *temperature > 0;
  if (temperature.value_or(0) > 0) set("temperature", "temp");
  if (const auto top_k = checkpoint.metadata.integer("general.sampling.top_k"))
    json["top_k"] = *top_k;
  set("top_p", "top_p");
  set("min_p", "min_p");
  set("repetition_penalty", "penalty_repeat");
  return json.empty() ? "" : json.dump(2) + "\n";
}

std::string pooling_config(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const int64_t type = checkpoint.metadata.integer(spec.architecture + ".pooling_type").value_or(0);
  if (type < 1 || type > 3) return "";
  Json json;
  json["word_embedding_dimension"] = spec.d_model;
  json["pooling_mode_mean_tokens"] = type == 1;
  json["pooling_mode_cls_token"] = type == 2;
  json["pooling_mode_lasttoken"] = type == 3;
  return json.dump(2) + "\n";
}

std::string embedding_modules() {
  Json modules = Json::array();
  for (const auto& [type, path] :
       {std::pair{"Transformer", ""}, {"Pooling", "1_Pooling"}, {"Normalize", "2_Normalize"}}) {
    modules.push_back({{"idx", modules.size()},
                       {"name", std::to_string(modules.size())},
                       {"path", path},
                       {"type", std::string("sentence_transformers.models.") + type}});
  }
  return modules.dump(2) + "\n";
}

std::string tokenizer_config(const Checkpoint& checkpoint, const TokenizerSpec& spec) {
  Json json;
  json["tokenizer_class"] = "PreTrainedTokenizerFast";
  json["clean_up_tokenization_spaces"] = false;
  const auto set_token = [&](const char* name, std::optional<TokenId> id) {
    if (id) json[name] = spec.pieces[static_cast<size_t>(*id)];
  };
  set_token("bos_token", spec.bos);
  set_token("eos_token", spec.eos);
  set_token("unk_token", spec.unknown);
  set_token("pad_token", spec.pad);
  if (Json templates = chat_templates(checkpoint.metadata); !templates.is_null())
    json["chat_template"] = std::move(templates);
  return json.dump(2) + "\n";
}

// params.json contains fewer values than the model has: a model with biases, head norms or another
// feature that Meta's code does not have is refused.
std::string meta_params(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const auto require = [&](bool holds, std::string_view what) {
    LIMPID_CHECK(UnsupportedError, holds, "{}: Meta's layout cannot express this model's {}",
                 checkpoint.path, what);
  };
  const auto has_none = [&](std::string_view ending) {
    return std::ranges::none_of(checkpoint.tensors,
                                [&](const auto& tensor) { return tensor.first.ends_with(ending); });
  };
  require(model_class_of(checkpoint).has_meta_layout,
          fmt::format("architecture, {}", spec.architecture));
  require(spec.head_dim * spec.n_heads == spec.d_model, "width of a head");
  require(spec.rope.n_rot == spec.head_dim, "partial rotation");
  require(has_none(".bias"), "biases");
  require(has_none("attn_q_norm.weight"), "norms of heads");
  Json json;
  json["dim"] = spec.d_model;
  json["n_layers"] = spec.n_layers;
  json["n_heads"] = spec.n_heads;
  json["n_kv_heads"] = spec.n_kv_heads;
  json["vocab_size"] = spec.vocab_size;
  // Meta's code computes the width of the MLP by a rule (meta_hidden_size). The multiplier below
  // makes the rule give d_ff: it reduces int(8 d_model / 3) to at most d_ff, and rounding up to a
  // multiple of d_ff gives d_ff.
  const int64_t two_thirds = 8 * spec.d_model / 3;
  if (two_thirds > spec.d_ff) {
    json["ffn_dim_multiplier"] =
        static_cast<double>(spec.d_ff) / static_cast<double>(two_thirds) * (1 - 1e-9);
  }
  json["multiple_of"] = spec.d_ff;
  json["norm_eps"] = shortest_decimal(spec.norm_eps);
  json["rope_theta"] = shortest_decimal(spec.rope.base);
  json["max_seq_len"] = spec.n_ctx_train;
  if (spec.rope.scaling == "none") return json.dump() + "\n";
  const Json scaling = rope_scaling(checkpoint, spec);
  const Json metas = {{"rope_type", "llama3"},
                      {"factor", 8.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 4.0},
                      {"original_max_position_embeddings", 8192}};
  require(scaling == metas, "rotary scaling, only that of Llama 3.1");
  json["use_scaled_rope"] = true;
  return json.dump() + "\n";
}

nlohmann::ordered_json nano_gpt_arguments(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const auto require = [&](bool holds, const char* what) {
    LIMPID_CHECK(UnsupportedError, holds, "{}: nanoGPT cannot express this model's {}",
                 checkpoint.path, what);
  };
  require(spec.norm == NormKind::kLayer && spec.outer_norm == OuterNorm::kOutput &&
              spec.norm_eps == 1e-5F,
          "norms");
  require(scales_by_head_dim(checkpoint, spec) && !spec.scale_by_inverse_layer,
          "scale of attention");
  require(spec.d_ff == 4 * spec.d_model, "width of the MLP");
  require(spec.mlp == MlpKind::kGeluErf || spec.mlp == MlpKind::kGeluTanh, "activation");
  require(spec.tied_embeddings, "output matrix, which is not the embedding");
  return {{"model_args",
           {{"n_layer", spec.n_layers},
            {"n_head", spec.n_heads},
            {"n_embd", spec.d_model},
            {"block_size", spec.n_ctx_train},
            {"bias", true},
            {"vocab_size", spec.vocab_size},
            {"dropout", 0.0}}},
          {"config", {{"activation_function", activation_name(spec.mlp)}}}};
}

}  // namespace limpid
