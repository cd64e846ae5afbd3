#include "layouts/gpt2_config.h"

#include <fmt/format.h>

#include <array>

namespace limpid {
namespace {

// Functions that are equal up to rounding share one canonical name. gelu_fast has the constants of
// gelu_new with fewer digits.
struct Activation {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kActivations = {
    Activation{"gelu_new", "gelu_tanh"},  Activation{"gelu_pytorch_tanh", "gelu_tanh"},
    Activation{"gelu_fast", "gelu_tanh"}, Activation{"gelu_tanh", "gelu_tanh"},
    Activation{"gelu", "gelu_erf"},       Activation{"gelu_python", "gelu_erf"},
    Activation{"gelu_erf", "gelu_erf"},   Activation{"relu", "relu"},
    Activation{"silu", "silu"},           Activation{"swish", "silu"},
};

std::optional<int64_t> read_size(SpecReader& config, std::string_view name, int64_t largest) {
  const int64_t value = config.size_or(name, 0, largest);  // a stated 0 is refused
  return value == 0 ? std::nullopt : std::optional(value);
}

// Reads a size that has several names. Throws FormatError when two of the names are present with
// different values.
std::optional<int64_t> read_size(SpecReader& config, std::initializer_list<std::string_view> names,
                                 int64_t largest) {
  std::optional<int64_t> found;
  for (const std::string_view name : names) {
    const std::optional<int64_t> value = read_size(config, name, largest);
    if (value && found && *value != *found)
      config.fail(name, fmt::format("is {}, but {} is {}", *value, *names.begin(), *found));
    if (value) found = value;
  }
  return found;
}

}  // namespace

std::optional<std::string> gpt2_activation(std::string_view name) {
  for (const Activation& activation : kActivations) {
    if (activation.theirs == name) return std::string(activation.ours);
  }
  return std::nullopt;
}

Gpt2Config read_gpt2_config(SpecReader& config) {
  Gpt2Config read;
  read.n_layers = read_size(config, "n_layer", kMostLayers);
  read.n_heads = read_size(config, "n_head", kLargestSize);
  read.d_model = read_size(config, "n_embd", kLargestSize);
  read.d_ff = read_size(config, "n_inner", kLargestSize);
  read.n_ctx = read_size(config, {"n_positions", "n_ctx", "block_size"}, kLargestSize);
  read.vocab_size = read_size(config, "vocab_size", kLargestSize);
  const std::string activation = config.string_or("activation_function", "");
  if (!activation.empty()) {
    read.activation = gpt2_activation(activation);
    if (!read.activation) {
      config.refuse("activation_function",
                    fmt::format("is `{}` (known: gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, "
                                "relu, silu)",
                                activation));
    }
  }
  read.norm_eps = config.positive_or("layer_norm_epsilon", 1e-5);
  read.scale_by_head_dim = config.flag_or("scale_attn_weights", true);
  read.scale_by_inverse_layer = config.flag_or("scale_attn_by_inverse_layer_idx", false);
  config.flag_or("reorder_and_upcast_attn", false);
  for (const auto& [name, value] :
       {std::pair{"tie_word_embeddings", &read.tied}, std::pair{"bias", &read.has_biases}}) {
    if (config.contains(name)) *value = config.flag_or(name, false);
  }
  return read;
}

void set_gpt2_keys(const Gpt2Config& config, Metadata& canonical) {
  const auto size = [&](const char* name, int64_t value) {
    canonical.set(std::string("gpt2.") + name, {value, "u32"});
  };
  // The types are those that GGUF writers use, so that both layouts hold the same value.
  const auto number = [&](const char* name, double value) {
    canonical.set(std::string("gpt2.") + name, {double{static_cast<float>(value)}, "f32"});
  };
  canonical.set("general.architecture", {std::string("gpt2"), "string"});
  size("block_count", config.n_layers.value());
  size("context_length", config.n_ctx.value());
  size("embedding_length", config.d_model.value());
  size("feed_forward_length", config.d_ff.value());
  size("vocab_size", config.vocab_size.value());
  size("attention.head_count", config.n_heads.value());
  number("attention.layer_norm_epsilon", config.norm_eps);
  // Limpid's own keys are written only when they differ from the default. Other readers can then
  // open the remaining files.
  const std::string& activation = config.activation.value();
  if (activation != "gelu_tanh") canonical.set("gpt2.hidden_activation", {activation, "string"});
  if (!config.scale_by_head_dim) number("attention.scale", 1);
  if (config.scale_by_inverse_layer)
    canonical.set("gpt2.attention.scale_by_inverse_layer", {true, "bool"});
}

}  // namespace limpid
