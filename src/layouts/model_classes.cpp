#include "layouts/model_classes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace limpid {
namespace {

constexpr auto kPairs = RowOrder::kInterleavedPairs;

constexpr std::array kClasses = {
    ModelClass{.class_name = "LlamaForCausalLM",  // also SmolLM
               .model_type = "llama",
               .architecture = "llama",
               .gguf_row_order = kPairs,
               .attention_bias_key = "attention_bias",
               .mlp_bias_key = "mlp_bias",
               .requires_kv_heads = false,
               .biases_in_llama_cpp = KnownBiases::kAll,
               .has_meta_layout = true},
    ModelClass{.class_name = "MistralForCausalLM",
               .model_type = "mistral",
               .architecture = "llama",
               .gguf_row_order = kPairs,
               .sliding_window = 4096},
    ModelClass{.class_name = "Qwen2ForCausalLM",
               .model_type = "qwen2",
               .architecture = "qwen2",
               .always_has_qkv_bias = true,
               .sliding_window = 4096,
               .has_window_layers = true},
    ModelClass{.class_name = "Qwen3ForCausalLM",
               .model_type = "qwen3",
               .architecture = "qwen3",
               .attention_bias_key = "attention_bias",
               .has_qk_norm = true,
               .head_dim = 128,
               .sliding_window = 4096,
               .has_window_layers = true,
               .biases_in_llama_cpp = KnownBiases::kNone},
    ModelClass{.class_name = "Ernie4_5ForCausalLM",
               .model_type = "ernie4_5",
               .architecture = "ernie4_5",
               .row_order = kPairs,
               .gguf_row_order = kPairs,
               .attention_bias_key = "use_bias",
               .mlp_bias_key = "use_bias",
               .requires_rope_base = true,
               .head_dim = 128,
               .divides_null_head_dim = true,
               .norm_eps = 1e-5,
               .tied = true},
    ModelClass{.class_name = "GPT2LMHeadModel",
               .model_type = "gpt2",
               .architecture = "gpt2",
               .family = Family::kGpt2,
               .tied = true,
               .stores_in_out = true,
               .module_prefix = "transformer.",
               .adapted_modules = "c_attn",
               .biases_in_llama_cpp = KnownBiases::kAll},
};

constexpr std::array kOptionalTensors = {
    OptionalTensor{"attn_q.bias", &OptionalParts::qkv_bias},
    OptionalTensor{"attn_k.bias", &OptionalParts::qkv_bias},
    OptionalTensor{"attn_v.bias", &OptionalParts::qkv_bias},
    OptionalTensor{"attn_output.bias", &OptionalParts::o_bias},
    OptionalTensor{"ffn_gate.bias", &OptionalParts::mlp_bias},
    OptionalTensor{"ffn_up.bias", &OptionalParts::mlp_bias},
    OptionalTensor{"ffn_down.bias", &OptionalParts::mlp_bias},
    OptionalTensor{"attn_q_norm.weight", &OptionalParts::qk_norm},
    OptionalTensor{"attn_k_norm.weight", &OptionalParts::qk_norm},
};

}  // namespace

std::span<const ModelClass> model_classes() { return kClasses; }

const ModelClass* find_model_class(std::string_view architecture) {
  const auto* found = std::ranges::find(kClasses, architecture, &ModelClass::architecture);
  return found == kClasses.end() ? nullptr : found;
}

const ModelClass& model_class_of(const Checkpoint& canonical) {
  const auto architecture = canonical.metadata.string("general.architecture");
  if (!architecture) {
    throw_format_error(canonical.path, "general.architecture",
                       "is missing; the file does not name its model's architecture");
  }
  if (const ModelClass* found = find_model_class(*architecture)) return *found;
  std::vector<std::string_view> known;  // several classes in a row may share one
  known.reserve(std::size(kClasses));
  for (const ModelClass& one : kClasses) known.push_back(one.architecture);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw UnsupportedError(
      fmt::format("{}: architecture `{}` is not supported; choose a model of one of these: {}",
                  canonical.path, *architecture, fmt::join(known, ", ")));
}

std::span<const OptionalTensor> optional_tensors() { return kOptionalTensors; }

std::optional<bool OptionalParts::*> optional_part(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return std::nullopt;
  for (const OptionalTensor& optional : kOptionalTensors) {
    if (tensor.ends_with(optional.name) && tensor[tensor.size() - optional.name.size() - 1] == '.')
      return optional.part;
  }
  return std::nullopt;
}

Presence presence_of(bool OptionalParts::*part, const ModelClass& model_class) {
  using When = Presence::When;
  const bool always = (part == &OptionalParts::qk_norm && model_class.has_qk_norm) ||
                      (part == &OptionalParts::qkv_bias && model_class.always_has_qkv_bias);
  if (always) return {When::kAlways};
  std::string_view key;
  if (part == &OptionalParts::qkv_bias || part == &OptionalParts::o_bias)
    key = model_class.attention_bias_key;
  if (part == &OptionalParts::mlp_bias) key = model_class.mlp_bias_key;
  return key.empty() ? Presence{} : Presence{When::kIfConfigured, key};
}

}  // namespace limpid
