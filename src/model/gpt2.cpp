#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <ranges>
#include <utility>

#include "layouts/spec_reader.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {
namespace {

// A choice from a closed list: the value of a key, or the first one when the key is absent.
template <typename Kind, size_t n>
Kind read_choice(SpecReader& reader, std::string_view key,
                 const std::pair<std::string_view, Kind> (&choices)[n]) {
  const std::string name = reader.string_or(key, choices[0].first);
  for (const auto& [choice, kind] : choices) {
    if (choice == name) return kind;
  }
  reader.refuse(key, "is `{}` (known: {})", name, fmt::join(choices | std::views::keys, ", "));
}

}  // namespace

void read_gpt2_keys(SpecReader& reader, DecoderSpec& spec) {
  spec.norm =
      read_choice<NormKind>(reader, "norm", {{"layer", NormKind::kLayer}, {"rms", NormKind::kRms}});
  spec.outer_norm = read_choice<OuterNorm>(
      reader, "outer_norm", {{"output", OuterNorm::kOutput}, {"embedding", OuterNorm::kEmbedding}});
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
  spec.norm_eps = static_cast<float>(reader.required_positive("attention.layer_norm_epsilon"));
  spec.mlp = read_choice<MlpKind>(reader, "hidden_activation",
                                  {{"gelu_tanh", MlpKind::kGeluTanh},
                                   {"gelu_erf", MlpKind::kGeluErf},
                                   {"relu", MlpKind::kRelu},
                                   {"silu", MlpKind::kSilu}});
  spec.attention_scale = static_cast<float>(
      reader.positive_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(spec.head_dim))));
  spec.scale_by_inverse_layer = reader.flag_or("attention.scale_by_inverse_layer", false);
}

}  // namespace limpid
