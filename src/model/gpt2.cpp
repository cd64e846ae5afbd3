#include "model/gpt2.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "layouts/spec_reader.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

MlpKind read_activation(SpecReader& reader) {
  const std::string name = reader.string_or("hidden_activation", "gelu_tanh");
  if (name == "gelu_tanh") return MlpKind::kGeluTanh;
  if (name == "gelu_erf") return MlpKind::kGeluErf;
  if (name == "relu") return MlpKind::kRelu;
  if (name == "silu") return MlpKind::kSilu;
  reader.refuse("hidden_activation",
                fmt::format("is `{}` (known: gelu_tanh, gelu_erf, relu, silu)", name));
}

// The tensor table of a GPT-2. A file has all of its biases or none (nanoGPT's `bias=False`). If a
// file lacks a single bias, it is damaged, and the error names the missing tensor.
class Gpt2Table {
 public:
  Gpt2Table(const Checkpoint& checkpoint, const DecoderSpec& spec)
      : spec_(spec),
        has_biases_(checkpoint.find("output_norm.bias") != nullptr),
        is_fused_(checkpoint.find("blk.0.attn_q.weight") == nullptr) {
    table_.weights = std::make_unique<DecoderWeights>();
    DecoderWeights& w = *table_.weights;
    w.blocks.resize(static_cast<size_t>(spec.n_layers));
    add("token_embd.weight", Shape{spec.vocab_size, spec.d_model}, w.token_embedding,
        spec.tied_embeddings ? WeightUse::kLookupAndHead : WeightUse::kLookup);
    add("position_embd.weight", Shape{spec.n_ctx_train, spec.d_model}, w.position_embedding,
        WeightUse::kLookup);
    for (int64_t i = 0; i < spec.n_layers; ++i) add_block(fmt::format("blk.{}.", i), w.blocks[i]);
    add_norm("output_norm", w.output_norm, w.output_norm_bias);
    if (!spec.tied_embeddings) {
      add("output.weight", Shape{spec.vocab_size, spec.d_model}, w.output, WeightUse::kHead);
    }
  }

  TensorTable take() { return std::move(table_); }

 private:
  // The weights of one block. In a fused matrix [3 d, d], Q is rows 0 to d - 1, K the next d rows,
  // V the last d rows; each is loaded as a range of rows.
  void add_block(const std::string& at, BlockWeights& b) {
    const int64_t d = spec_.d_model;
    add_norm(at + "attn_norm", b.attn_norm, b.attn_norm_bias);
    const std::array weights = {&b.wq, &b.wk, &b.wv};
    const std::array biases = {&b.bq, &b.bk, &b.bv};
    constexpr std::array kNames = {"attn_q", "attn_k", "attn_v"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (is_fused_) {
        add_linear(at + "attn_qkv", {static_cast<int64_t>(i) * d, d}, 3 * d, d, *weights[i],
                   *biases[i]);
      } else {
        add_linear(at + kNames[i], {}, d, d, *weights[i], *biases[i]);
      }
    }
    add_linear(at + "attn_output", {}, d, d, b.wo, b.bo);
    add_norm(at + "ffn_norm", b.ffn_norm, b.ffn_norm_bias);
    add_linear(at + "ffn_up", {}, spec_.d_ff, d, b.w_up, b.b_up);
    add_linear(at + "ffn_down", {}, d, spec_.d_ff, b.w_down, b.b_down);
  }

  void add_norm(const std::string& name, Weight& weight, Weight& bias) {
    add(name + ".weight", Shape{spec_.d_model}, weight, WeightUse::kVector);
    if (has_biases_) add(name + ".bias", Shape{spec_.d_model}, bias, WeightUse::kVector);
  }

  void add_linear(const std::string& name, RowRange rows, int64_t n_out, int64_t n_in,
                  Weight& weight, Weight& bias) {
    add(name + ".weight", Shape{n_out, n_in}, weight, WeightUse::kProjection, rows);
    if (has_biases_) add(name + ".bias", Shape{n_out}, bias, WeightUse::kVector, rows);
  }

  void add(std::string name, Shape shape, Weight& place, WeightUse use = WeightUse::kProjection,
           RowRange rows = {}) {
    TensorEntry entry{std::move(name), shape, &place, use};
    entry.rows = rows;
    table_.entries.push_back(std::move(entry));
  }

  const DecoderSpec& spec_;
  bool has_biases_;
  bool is_fused_;  // Q, K, V are the rows of one matrix
  TensorTable table_;
};

}  // namespace

DecoderSpec read_gpt2_spec(const Checkpoint& checkpoint) {
  SpecReader reader(checkpoint, "gpt2");
  DecoderSpec spec;
  spec.architecture = "gpt2";
  spec.norm = NormKind::kLayer;
  spec.position = PositionKind::kLearned;
  spec.n_layers = reader.required_size("block_count", kMostLayers);
  spec.d_model = reader.required_size("embedding_length", kLargestSize);
  spec.d_ff = reader.required_size("feed_forward_length", kLargestSize);
  spec.n_ctx_train = reader.required_size("context_length", kLargestSize);
  spec.n_heads = reader.required_size("attention.head_count", kLargestSize);
  spec.n_kv_heads = spec.n_heads;
  const int64_t n_kv_heads = reader.size_or("attention.head_count_kv", spec.n_heads, kLargestSize);
  if (n_kv_heads != spec.n_heads) {
    reader.fail(
        "attention.head_count_kv",
        fmt::format("is {}, but GPT-2 has as many as its {} heads", n_kv_heads, spec.n_heads));
  }
  if (spec.d_model % spec.n_heads != 0) {
    reader.fail("attention.head_count",
                fmt::format("{} heads do not divide the width of {}", spec.n_heads, spec.d_model));
  }
  spec.head_dim = spec.d_model / spec.n_heads;
  spec.norm_eps = static_cast<float>(reader.positive_or("attention.layer_norm_epsilon", 1e-5));
  spec.mlp = read_activation(reader);
  spec.attention_scale = static_cast<float>(
      reader.positive_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(spec.head_dim))));
  spec.scale_by_inverse_layer = reader.flag_or("attention.scale_by_inverse_layer", false);
  spec.vocab_size = reader.vocab_size();
  spec.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  reader.require_plain_transformer(spec.n_ctx_train);
  return spec;
}

TensorTable gpt2_tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  return Gpt2Table(checkpoint, spec).take();
}

}  // namespace limpid
