#include <cmath>

#include "base/check.h"
#include "layouts/model_classes.h"
#include "layouts/rope_scaling.h"
#include "layouts/spec_reader.h"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Reads the numbers of heads and their length, and checks that they are consistent.
void read_attention(SpecReader& reader, DecoderSpec& spec) {
  spec.n_kv_heads = reader.size_or("attention.head_count_kv", spec.n_heads, spec.n_heads);
  if (spec.n_heads % spec.n_kv_heads != 0) {
    reader.fail("attention.head_count_kv", "{} does not divide the number of heads, {}",
                spec.n_kv_heads, spec.n_heads);
  }
  spec.head_dim = reader.size_or("attention.key_length", spec.d_model / spec.n_heads, kLargestSize);
  const int64_t value_length =
      reader.size_or("attention.value_length", spec.head_dim, kLargestSize);
  if (value_length != spec.head_dim) {
    reader.fail("attention.value_length", "is {}, but the key length is {}", value_length,
                spec.head_dim);
  }
  if (spec.head_dim == 0) reader.fail("attention.head_count", "is larger than the embedding");
  if (spec.n_heads > kLargestSize / spec.head_dim) {
    reader.fail("attention.key_length",
                "is {}, and {} heads of this size are too large; the limit is {}", spec.head_dim,
                spec.n_heads, kLargestSize);
  }
}

// Reads the rope.scaling.* keys. Unknown types are refused by name. As in llama.cpp, a factor
// without a type scales linearly, and one beside the type `none` does not scale.
RopeScaling read_rope_scaling(SpecReader& reader) {
  RopeScaling scaling;
  const bool has_type = reader.contains("rope.scaling.type");
  const std::string type = reader.string_or("rope.scaling.type", "none");
  const double legacy_factor = reader.positive_or("rope.scale_linear", 1.0);
  scaling.factor = reader.positive_or("rope.scaling.factor", legacy_factor);
  scaling.low_freq_factor = reader.positive_or("rope.scaling.low_freq_factor", 1.0);
  scaling.high_freq_factor = reader.positive_or("rope.scaling.high_freq_factor", 4.0);
  reader.ignore("rope.scaling.finetuned");
  reader.require_neutral("rope.scaling.attn_factor", 1);
  if (type == "linear" || (!has_type && scaling.factor != 1.0)) {
    scaling.kind = RopeScalingKind::kLinear;
  } else if (type == "llama3") {
    scaling.kind = RopeScalingKind::kLlama3;
    if (scaling.low_freq_factor >= scaling.high_freq_factor)
      reader.fail("rope.scaling.low_freq_factor", "is not below rope.scaling.high_freq_factor");
  } else if (type != "none") {
    reader.refuse("rope.scaling.type",
                  "is `{}` (known: none, linear, llama3, and the factors of rope_freqs.weight)",
                  type);
  } else {
    scaling.factor = 1.0;
  }
  // Only YaRN would read this key without llama3, and YaRN is refused.
  scaling.original_context =
      reader.size_or("rope.scaling.original_context_length", 8192, kLargestSize);
  return scaling;
}

// Computes the inverse frequencies from the rope.* keys and rope_freqs.weight. Both kinds of
// divisors multiply.
void read_rope(SpecReader& reader, const Checkpoint& checkpoint, DecoderSpec& spec) {
  RopeSpec& rope = spec.rope;
  rope.n_rot = reader.size_or("rope.dimension_count", spec.head_dim, spec.head_dim);
  if (rope.n_rot % 2 != 0)
    reader.fail("rope.dimension_count", "is {}, expected an even number", rope.n_rot);
  rope.base = reader.positive_or("rope.freq_base", 10000.0);
  const RopeScaling scaling = read_rope_scaling(reader);
  rope.scaling = rope_scaling_name(scaling.kind);
  rope.scaling_factor = scaling.factor;

  rope.inverse_frequencies = rope_frequencies(rope.base, rope.n_rot);
  std::vector<float> divisors = rope_divisors(scaling, rope.inverse_frequencies);
  const bool overridden = reader.flag_or("rope.scaling.overridden", false);
  const TensorView* factors = overridden ? nullptr : checkpoint.find("rope_freqs.weight");
  if (factors != nullptr) {
    if (factors->shape != Shape{rope.n_rot / 2} || scaling.kind == RopeScalingKind::kLlama3) {
      throw_format_error(checkpoint.path, "rope_freqs.weight",
                         "is {}, expected [{}] and no llama3 scaling beside it",
                         factors->to_string(), rope.n_rot / 2);
    }
    Tensor storage;
    const std::vector<float> more = decode(checkpoint.read("rope_freqs.weight", storage));
    for (size_t i = 0; i < divisors.size(); ++i) divisors[i] *= more[i];
    rope.scaling = "factors";
  }
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double frequency = rope.inverse_frequencies[i] /= static_cast<double>(divisors[i]);
    if (std::isfinite(frequency) && frequency >= 0) continue;
    if (factors != nullptr) {
      throw_format_error(checkpoint.path, "rope_freqs.weight", "gives a rotation frequency of {}",
                         frequency);
    }
    reader.fail("rope.freq_base", "gives a rotation frequency of {}", frequency);
  }
}

}  // namespace

void read_llama_keys(SpecReader& reader, const Checkpoint& checkpoint, DecoderSpec& spec) {
  spec.row_order = checkpoint.row_order.value_or(model_class_of(checkpoint).gguf_row_order);
  spec.norm_eps = static_cast<float>(reader.required_positive("attention.layer_norm_rms_epsilon"));
  read_attention(reader, spec);
  read_rope(reader, checkpoint, spec);
}

}  // namespace limpid
