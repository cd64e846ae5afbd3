#include "model/configuration.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "checkpoint/metadata.h"
#include "layouts/rope_scaling.h"
#include "layouts/spec_reader.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {
namespace {

// The sizes of a published model, in the order of the rows below.
struct NamedConfiguration {
  std::string_view name;
  std::string_view architecture;
  int64_t n_layers;
  int64_t d_model;
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t d_ff;
  int64_t vocab_size;
  int64_t n_ctx;
  bool tied;
  double rope_base = 10000;
  double llama3_factor = 0;  // 0: no scaling
};

constexpr NamedConfiguration kNamed[] = {
    {"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, false},
    {"llama-2-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096, false},
    {"llama-2-70b", "llama", 80, 8192, 64, 8, 128, 28672, 32000, 4096, false},
    {"llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, 5e5},
    {"llama-3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, false, 5e5},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, false, 5e5, 8},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 5e5, 8},
    {"llama-3.1-405b", "llama", 126, 16384, 128, 8, 128, 53248, 128256, 131072, false, 5e5, 8},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, 5e5, 32},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, 5e5, 32},
    {"mistral-7b-v0.3", "llama", 32, 4096, 32, 8, 128, 14336, 32768, 32768, false, 1e6},
    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, true, 1e5},
    {"smollm2-360m", "llama", 32, 960, 15, 5, 64, 2560, 49152, 8192, true, 1e5},
    {"smollm2-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, 8192, true, 1.3e5},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, true, 1e6},
    {"qwen2.5-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, false, 1e6},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, true, 1e6},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, false, 1e6},
    {"nanogpt-char-cpu", "gpt2", 4, 128, 4, 4, 32, 512, 65, 64, true},
    {"nanogpt-char", "gpt2", 6, 384, 6, 6, 64, 1536, 65, 256, true},
    {"gpt-nano", "gpt2", 3, 48, 3, 3, 16, 192, 50257, 1024, false},
    {"gpt-micro", "gpt2", 4, 128, 4, 4, 32, 512, 50257, 1024, false},
    {"gpt-mini", "gpt2", 6, 192, 6, 6, 32, 768, 50257, 1024, false},
    {"gopher-44m", "gpt2", 8, 512, 16, 16, 32, 2048, 50257, 1024, false},
    {"gpt2-124m", "gpt2", 12, 768, 12, 12, 64, 3072, 50257, 1024, true},
    {"gpt2", "gpt2", 12, 768, 12, 12, 64, 3072, 50257, 1024, true},
    {"gpt2-medium", "gpt2", 24, 1024, 16, 16, 64, 4096, 50257, 1024, true},
    {"gpt2-large", "gpt2", 36, 1280, 20, 20, 64, 5120, 50257, 1024, true},
    {"gpt2-xl", "gpt2", 48, 1600, 25, 25, 64, 6400, 50257, 1024, true},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kNamed)> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kNamed[i].name;
  return names;
}();

// The GGUF keys of a row.
Metadata keys_of(const NamedConfiguration& named) {
  Metadata keys;
  keys.set("general.architecture", {std::string(named.architecture), "string"});
  keys.set("general.name", {std::string(named.name), "string"});
  KeyWriter below(keys, fmt::format("{}.", named.architecture));
  below.integer("block_count", named.n_layers);
  below.integer("context_length", named.n_ctx);
  below.integer("embedding_length", named.d_model);
  below.integer("feed_forward_length", named.d_ff);
  below.integer("vocab_size", named.vocab_size);
  below.integer("attention.head_count", named.n_heads);
  if (find_model_class(named.architecture)->family == Family::kGpt2) {
    below.number("attention.layer_norm_epsilon", 1e-5);
    return keys;
  }
  const bool is_qwen = named.architecture.starts_with("qwen");
  below.number("attention.layer_norm_rms_epsilon", is_qwen ? 1e-6 : 1e-5);
  below.integer("attention.head_count_kv", named.n_kv_heads);
  below.integer("attention.key_length", named.head_dim);
  below.integer("attention.value_length", named.head_dim);
  below.number("rope.freq_base", named.rope_base);
  if (named.llama3_factor > 0)
    set_rope_scaling_keys(keys, named.architecture,
                          {RopeScalingKind::kLlama3, named.llama3_factor});
  return keys;
}

}  // namespace

std::span<const std::string_view> configuration_names() { return kNames; }

bool is_configuration_name(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end();
}

Checkpoint named_configuration(std::string_view name) {
  const auto* found = std::ranges::find(kNamed, name, &NamedConfiguration::name);
  LIMPID_CHECK(ArgumentError, found != std::end(kNamed),
               "no file or folder '{}', and no configuration of that name; choose one of {}", name,
               fmt::join(kNames, ", "));
  const ModelClass& model_class = *find_model_class(found->architecture);
  const OptionalParts parts{.tied = found->tied,
                            .qkv_bias = model_class.always_has_qkv_bias,
                            .qk_norm = model_class.has_qk_norm};
  Checkpoint checkpoint = checkpoint_of_shapes(keys_of(*found), parts);
  checkpoint.path = found->name;
  return checkpoint;
}

// Works in two steps. The few tensors that read_spec looks at are added first. Then tensor_table
// lists all other tensors for the spec.
Checkpoint checkpoint_of_shapes(Metadata canonical, const OptionalParts& parts) {
  Checkpoint checkpoint;
  checkpoint.path = "the configuration";
  checkpoint.format = "shapes";
  checkpoint.metadata = std::move(canonical);
  const auto add = [&](const std::string& name, const Shape& shape) {
    if (checkpoint.tensors.emplace(name, TensorView{DType::kF32, shape, nullptr}).second)
      checkpoint.tensor_order.push_back(name);
  };
  // read_spec reads the sizes from these tensors.
  const ModelClass& model_class = model_class_of(checkpoint);
  SpecReader reader(checkpoint, std::string(model_class.architecture));
  const auto size = [&](const char* name) { return reader.required_size(name, kLargestSize); };
  const Shape table{size("vocab_size"), size("embedding_length")};
  add("token_embd.weight", table);
  if (!parts.tied) add("output.weight", table);
  if (model_class.family == Family::kGpt2)
    add("output_norm.bias", Shape{table[1]});  // tells read_spec that the model has biases

  const DecoderSpec spec = read_spec(checkpoint);
  for (const TensorEntry& entry : tensor_table(checkpoint, spec).entries) {
    const auto part = optional_part(entry.name);
    if (entry.required || (part && parts.**part)) add(entry.name, entry.shape);
  }
  return checkpoint;
}

}  // namespace limpid
