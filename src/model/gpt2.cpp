#include <fmt/format.h>

#include <cmath>

#include "model/families.h"

namespace limpid {
namespace {

MlpKind read_activation(SpecReader& reader) {
  const std::string name = reader.string_or("hidden_activation", "gelu_tanh");
  if (name == "gelu_tanh") return MlpKind::kGeluTanh;
  if (name == "gelu_erf") return MlpKind::kGeluErf;
  if (name == "relu") return MlpKind::kRelu;
  if (name == "silu") return MlpKind::kSilu;
  reader.refuse("hidden_activation", "is `{}` (known: gelu_tanh, gelu_erf, relu, silu)", name);
}

}  // namespace

void read_gpt2_keys(SpecReader& reader, DecoderSpec& spec) {
  spec.norm = NormKind::kLayer;
  spec.position = PositionKind::kLearned;
  spec.n_kv_heads = reader.size_or("attention.head_count_kv", spec.n_heads, kLargestSize);
  if (spec.n_kv_heads != spec.n_heads) {
    reader.fail("attention.head_count_kv", "is {}, but GPT-2 has as many as its {} heads",
                spec.n_kv_heads, spec.n_heads);
  }
  if (spec.d_model % spec.n_heads != 0) {
    reader.fail("attention.head_count", "{} heads do not divide the width of {}", spec.n_heads,
                spec.d_model);
  }
  spec.head_dim = spec.d_model / spec.n_heads;
  spec.norm_eps = static_cast<float>(reader.positive_or("attention.layer_norm_epsilon", 1e-5));
  spec.mlp = read_activation(reader);
  spec.attention_scale = static_cast<float>(
      reader.positive_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(spec.head_dim))));
  spec.scale_by_inverse_layer = reader.flag_or("attention.scale_by_inverse_layer", false);
}

}  // namespace limpid
