#include "model/llama.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "model/spec_reader.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr std::array kVariants = {
    LlamaVariant{"llama", true},
    LlamaVariant{"qwen2", false},
    LlamaVariant{"qwen3", false},
};

constexpr int64_t kLargestSize = int64_t{1} << 24;
constexpr int64_t kMostLayers = 4096;

void read_attention(SpecReader& reader, DecoderSpec& spec) {
  spec.n_heads = reader.required_size("attention.head_count", kLargestSize);
  spec.n_kv_heads = reader.size_or("attention.head_count_kv", spec.n_heads, spec.n_heads);
  if (spec.n_heads % spec.n_kv_heads != 0) {
    reader.fail("attention.head_count_kv",
                fmt::format("{} does not divide the {} heads", spec.n_kv_heads, spec.n_heads));
  }
  spec.head_dim = reader.size_or("attention.key_length", spec.d_model / spec.n_heads, kLargestSize);
  const int64_t value_length =
      reader.size_or("attention.value_length", spec.head_dim, kLargestSize);
  if (value_length != spec.head_dim) {
    reader.fail("attention.value_length",
                fmt::format("is {}, and the keys' length {}", value_length, spec.head_dim));
  }
  if (spec.head_dim == 0) reader.fail("attention.head_count", "is larger than the embedding");
}

// rope.* keys and rope_freqs.weight -> inverse frequencies. Su et al. 2021, eq. 15: base^(-2i /
// n_rot).
void read_rope(SpecReader& reader, const Checkpoint& checkpoint, DecoderSpec& spec) {
  RopeSpec& rope = spec.rope;
  rope.n_rot = reader.size_or("rope.dimension_count", spec.head_dim, spec.head_dim);
  if (rope.n_rot % 2 != 0)
    reader.fail("rope.dimension_count", fmt::format("is {}, expected an even number", rope.n_rot));
  rope.base = reader.positive_or("rope.freq_base", 10000.0);
  rope.scaling = reader.string_or("rope.scaling.type", "none");
  const double legacy_factor = reader.positive_or("rope.scale_linear", 1.0);
  rope.scaling_factor = reader.positive_or("rope.scaling.factor", legacy_factor);
  reader.ignore("rope.scaling.original_context_length");  // read by YaRN only, which is refused
  reader.ignore("rope.scaling.finetuned");
  reader.require_neutral("rope.scaling.attn_factor", 1);
  if (rope.scaling == "none" && rope.scaling_factor != 1.0) rope.scaling = "linear";
  LIMPID_CHECK(UnsupportedError, rope.scaling == "none" || rope.scaling == "linear",
               "{}: rope scaling `{}` is not supported (known: none, linear, and the factors of "
               "rope_freqs.weight)",
               checkpoint.path, rope.scaling);
  if (rope.scaling == "none") rope.scaling_factor = 1.0;

  std::vector<float> divisors(static_cast<size_t>(rope.n_rot / 2), 1.0F);
  if (const TensorView* factors = checkpoint.find("rope_freqs.weight")) {
    if (factors->shape != Shape{rope.n_rot / 2}) {
      throw FormatError(checkpoint.path, FormatError::kNoOffset, "rope_freqs.weight",
                        fmt::format("is {}, expected [{}]", factors->to_string(), rope.n_rot / 2));
    }
    Tensor storage;
    divisors = decode(checkpoint.read("rope_freqs.weight", storage));
    rope.scaling = "factors";
  }
  for (int64_t i = 0; i < rope.n_rot / 2; ++i) {
    const double frequency =
        std::pow(rope.base, -2.0 * static_cast<double>(i) / static_cast<double>(rope.n_rot));
    const double inverse = frequency / (divisors[i] * rope.scaling_factor);
    if (!std::isfinite(inverse))
      reader.fail("rope.freq_base", fmt::format("gives a rotation frequency of {}", inverse));
    rope.inverse_frequencies.push_back(inverse);
  }
}

// Keys of other models of the same architecture name that change the result: only their neutral
// value is accepted.
void refuse_other_models(SpecReader& reader, const DecoderSpec& spec) {
  for (const char* name : {"expert_count", "expert_used_count", "attention.clamp_kqv",
                           "attention.max_alibi_bias", "attn_logit_softcapping",
                           "final_logit_softcapping", "use_parallel_residual", "pooling_type"}) {
    reader.require_neutral(name, 0);
  }
  for (const char* name :
       {"attention.causal", "logit_scale", "embedding_scale", "residual_scale"}) {
    reader.require_neutral(name, 1);
  }
  const int64_t window = reader.size_or("attention.sliding_window", spec.n_ctx_train, INT64_MAX);
  LIMPID_CHECK(UnsupportedError, window >= spec.n_ctx_train,
               "the model attends within a sliding window of {} tokens (attention.sliding_window), "
               "which Limpid does "
               "not implement",
               window);
  reader.ignore("tensor_data_layout");
  reader.refuse_the_rest();
}

}  // namespace

const LlamaVariant* find_llama_variant(std::string_view architecture) {
  for (const LlamaVariant& variant : kVariants) {
    if (variant.architecture == architecture) return &variant;
  }
  return nullptr;
}

std::string llama_variant_names() {
  std::string names;
  for (const LlamaVariant& variant : kVariants)
    names += (names.empty() ? "" : ", ") + std::string(variant.architecture);
  return names;
}

DecoderSpec read_llama_spec(const Checkpoint& checkpoint, const LlamaVariant& variant) {
  SpecReader reader(checkpoint, variant.architecture);
  DecoderSpec spec;
  spec.architecture = variant.architecture;
  spec.interleaved_rope = checkpoint.head_rows == HeadRows::kOfArchitecture
                              ? variant.interleaved_rope
                              : checkpoint.head_rows == HeadRows::kInterleavedPairs;
  spec.n_layers = reader.required_size("block_count", kMostLayers);
  spec.d_model = reader.required_size("embedding_length", kLargestSize);
  spec.d_ff = reader.required_size("feed_forward_length", kLargestSize);
  spec.n_ctx_train = reader.required_size("context_length", kLargestSize);
  spec.norm_eps = static_cast<float>(reader.positive_or("attention.layer_norm_rms_epsilon", 1e-5));
  read_attention(reader, spec);
  read_rope(reader, checkpoint, spec);

  const TensorView* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.rank() != 2) {
    throw FormatError(
        checkpoint.path, FormatError::kNoOffset, "token_embd.weight",
        "is missing or no matrix; this file holds no runnable model (a vocabulary only?)");
  }
  spec.vocab_size = embedding->shape[0];
  const int64_t stated = reader.size_or("vocab_size", spec.vocab_size, kLargestSize);
  if (stated != spec.vocab_size) {
    reader.fail("vocab_size",
                fmt::format("is {}, but token_embd.weight has {} rows", stated, spec.vocab_size));
  }
  spec.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  refuse_other_models(reader, spec);
  return spec;
}

TensorTable llama_tensor_table(const DecoderSpec& spec) {
  TensorTable table;
  table.weights = std::make_unique<DecoderWeights>();
  DecoderWeights& w = *table.weights;
  w.blocks.resize(static_cast<size_t>(spec.n_layers));
  const auto matrix = [&](std::string name, int64_t rows, int64_t cols, Weight& place,
                          RowOrder order) {
    table.entries.push_back(
        {std::move(name), Shape{rows, cols}, &place, WeightUse::kProjection, true, order});
  };
  const auto vector = [&](std::string name, int64_t size, Weight& place, bool required,
                          RowOrder order) {
    table.entries.push_back(
        {std::move(name), Shape{size}, &place, WeightUse::kVector, required, order});
  };
  constexpr RowOrder kStored = RowOrder::kAsStored;
  const RowOrder qk = spec.interleaved_rope ? RowOrder::kInterleavedPairs : kStored;
  const int64_t d_q = spec.n_heads * spec.head_dim;
  const int64_t d_kv = spec.n_kv_heads * spec.head_dim;

  const WeightUse table_use =
      spec.tied_embeddings ? WeightUse::kLookupAndProjection : WeightUse::kLookup;
  table.entries.push_back(
      {"token_embd.weight", Shape{spec.vocab_size, spec.d_model}, &w.token_embedding, table_use});
  for (int64_t i = 0; i < spec.n_layers; ++i) {
    BlockWeights& b = w.blocks[i];
    const std::string at = fmt::format("blk.{}.", i);
    vector(at + "attn_norm.weight", spec.d_model, b.attn_norm, true, kStored);
    matrix(at + "attn_q.weight", d_q, spec.d_model, b.wq, qk);
    matrix(at + "attn_k.weight", d_kv, spec.d_model, b.wk, qk);
    matrix(at + "attn_v.weight", d_kv, spec.d_model, b.wv, kStored);
    matrix(at + "attn_output.weight", spec.d_model, d_q, b.wo, kStored);
    vector(at + "attn_q.bias", d_q, b.bq, false, qk);
    vector(at + "attn_k.bias", d_kv, b.bk, false, qk);
    vector(at + "attn_v.bias", d_kv, b.bv, false, kStored);
    vector(at + "attn_output.bias", spec.d_model, b.bo, false, kStored);
    vector(at + "attn_q_norm.weight", spec.head_dim, b.q_norm, false, qk);
    vector(at + "attn_k_norm.weight", spec.head_dim, b.k_norm, false, qk);
    vector(at + "ffn_norm.weight", spec.d_model, b.ffn_norm, true, kStored);
    matrix(at + "ffn_gate.weight", spec.d_ff, spec.d_model, b.w_gate, kStored);
    matrix(at + "ffn_up.weight", spec.d_ff, spec.d_model, b.w_up, kStored);
    matrix(at + "ffn_down.weight", spec.d_model, spec.d_ff, b.w_down, kStored);
    vector(at + "ffn_gate.bias", spec.d_ff, b.b_gate, false, kStored);
    vector(at + "ffn_up.bias", spec.d_ff, b.b_up, false, kStored);
    vector(at + "ffn_down.bias", spec.d_model, b.b_down, false, kStored);
  }
  vector("output_norm.weight", spec.d_model, w.output_norm, true, kStored);
  if (!spec.tied_embeddings)
    matrix("output.weight", spec.vocab_size, spec.d_model, w.output, kStored);
  table.consumed = {"rope_freqs.weight"};
  return table;
}

}  // namespace limpid
