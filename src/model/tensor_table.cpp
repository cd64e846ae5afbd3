// The tensors of a model, in the order of its forward pass, and those of its adapters
// (decoder_from_checkpoint.h).
#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "layouts/lora_adapter.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {
namespace {

enum class Need : uint8_t { kAbsent, kOptional, kRequired };

// The families differ in their biases. In the Llama family, norms have no bias, and the file
// decides which projections have one. A GPT-2 has all of its biases or none (nanoGPT's
// `bias=False`): if a file lacks a single one, it is damaged, and the error names the missing
// tensor.
class TableBuilder {
 public:
  TableBuilder(const Checkpoint& checkpoint, const DecoderSpec& spec) : spec_(spec) {
    if (spec.norm == NormKind::kLayer) {
      const bool has_biases = checkpoint.find("output_norm.bias") != nullptr;
      norm_bias_ = linear_bias_ = has_biases ? Need::kRequired : Need::kAbsent;
      is_fused_ = checkpoint.find("blk.0.attn_q.weight") == nullptr;
    }
    table_.weights = std::make_unique<DecoderWeights>();
    table_.weights->blocks.resize(static_cast<size_t>(spec.n_layers));
    if (spec.position == PositionKind::kRope) table_.consumed = {"rope_freqs.weight"};
  }

  TensorTable build() {
    DecoderWeights& w = *table_.weights;
    const int64_t d = spec_.d_model;
    const bool tied = spec_.tied_embeddings;
    add({"token_embd.weight", Shape{spec_.vocab_size, d}, &w.token_embedding,
         tied ? WeightUse::kLookupAndHead : WeightUse::kLookup});
    if (spec_.position == PositionKind::kLearned) {
      add({"position_embd.weight", Shape{spec_.n_ctx_train, d}, &w.position_embedding,
           WeightUse::kLookup});
    }
    if (spec_.outer_norm == OuterNorm::kEmbedding)
      add_norm("token_embd_norm", w.embedding_norm, w.embedding_norm_bias);
    for (layer_ = 0; layer_ < spec_.n_layers; ++layer_)
      add_block(fmt::format("blk.{}.", layer_), w.blocks[layer_]);
    if (spec_.outer_norm == OuterNorm::kOutput)
      add_norm("output_norm", w.output_norm, w.output_norm_bias);
    if (!tied) add({"output.weight", Shape{spec_.vocab_size, d}, &w.output, WeightUse::kHead});
    return std::move(table_);
  }

 private:
  void add_block(const std::string& at, BlockWeights& b) {
    const int64_t d = spec_.d_model;
    const int64_t d_q = spec_.n_heads * spec_.head_dim;
    const int64_t d_kv = spec_.n_kv_heads * spec_.head_dim;
    const RowOrder qk = spec_.row_order;
    add_norm(at + "attn_norm", b.attn_norm, b.attn_norm_bias);
    if (is_fused_) {
      add_fused(at + "attn_qkv", b);
    } else {
      add_linear(at + "attn_q", d_q, d, b.wq, b.bq, qk);
      add_linear(at + "attn_k", d_kv, d, b.wk, b.bk, qk);
      add_linear(at + "attn_v", d_kv, d, b.wv, b.bv);
    }
    add_linear(at + "attn_output", d, d_q, b.wo, b.bo);
    if (spec_.norm == NormKind::kRms) {
      add_vector(at + "attn_q_norm.weight", spec_.head_dim, b.q_norm, Need::kOptional, qk);
      add_vector(at + "attn_k_norm.weight", spec_.head_dim, b.k_norm, Need::kOptional, qk);
    }
    add_norm(at + "ffn_norm", b.ffn_norm, b.ffn_norm_bias);
    if (spec_.mlp == MlpKind::kSwiGlu)
      add_linear(at + "ffn_gate", spec_.d_ff, d, b.w_gate, b.b_gate);
    add_linear(at + "ffn_up", spec_.d_ff, d, b.w_up, b.b_up);
    add_linear(at + "ffn_down", d, spec_.d_ff, b.w_down, b.b_down);
  }

  // In a fused matrix [3 d, d], Q is rows 0 to d - 1, K the next d rows, V the last d rows; each is
  // loaded as a range of rows.
  void add_fused(const std::string& name, BlockWeights& b) {
    const int64_t d = spec_.d_model;
    const std::array weights = {&b.wq, &b.wk, &b.wv};
    const std::array biases = {&b.bq, &b.bk, &b.bv};
    for (size_t i = 0; i < weights.size(); ++i) {
      const RowRange rows{static_cast<int64_t>(i) * d, d};
      add_linear(name, 3 * d, d, *weights[i], *biases[i], RowOrder::kHalfSplit, rows);
    }
  }

  void add_linear(const std::string& name, int64_t n_out, int64_t n_in, Weight& weight,
                  Weight& bias, RowOrder order = RowOrder::kHalfSplit, RowRange rows = {}) {
    add({name + ".weight", Shape{n_out, n_in}, &weight, WeightUse::kProjection, true, order, rows});
    add_vector(name + ".bias", n_out, bias, linear_bias_, order, rows);
  }

  void add_norm(const std::string& name, Weight& weight, Weight& bias) {
    add_vector(name + ".weight", spec_.d_model, weight, Need::kRequired);
    add_vector(name + ".bias", spec_.d_model, bias, norm_bias_);
  }

  void add_vector(std::string name, int64_t size, Weight& place, Need need,
                  RowOrder order = RowOrder::kHalfSplit, RowRange rows = {}) {
    if (need == Need::kAbsent) return;
    add({std::move(name), Shape{size}, &place, WeightUse::kVector, need == Need::kRequired, order,
         rows});
  }

  void add(TensorEntry entry) {
    entry.layer = layer_;
    table_.entries.push_back(std::move(entry));
  }

  const DecoderSpec& spec_;
  Need norm_bias_ = Need::kAbsent;
  Need linear_bias_ = Need::kOptional;
  bool is_fused_ = false;  // Q, K, V are the rows of one matrix
  int64_t layer_ = -1;     // WeightSource::layer of what is added
  TensorTable table_;
};

// Adds the two matrices of every adapter of every projection. If a weight is some rows of a matrix
// (Q of a fused QKV), its update uses all of A and the same rows of B.
//
// The rows of B are half-split over the elements that rotate (layouts/lora_adapter.h), whatever the
// order of the base. Interleaved pairs of the base are put half-split over the whole head; the two
// orders differ when only a part rotates.
void add_adapters(const Checkpoint& checkpoint, const DecoderSpec& spec, TensorTable& table) {
  const int64_t n_adapters = n_lora_adapters(checkpoint);
  const std::vector<TensorEntry> bases = table.entries;
  for (const TensorEntry& base : bases) {
    for (int64_t i = 0; i < n_adapters && base.use == WeightUse::kProjection; ++i) {
      const LoraNames names = lora_names(base.name, i);
      const TensorView* a = checkpoint.find(names.a);
      if (a == nullptr) continue;
      LIMPID_CHECK(
          UnsupportedError,
          base.row_order == RowOrder::kHalfSplit || spec.rope.n_rot == spec.head_dim,
          "{}: Limpid cannot apply an adapter to rows in interleaved pairs when only {} of the {} "
          "elements of a head rotate",
          base.name, spec.rope.n_rot, spec.head_dim);
      const auto scale = checkpoint.metadata.number(lora_scale_key(i)).value_or(1.0);
      table.adapters.push_back({base.place, {{}, {}, scale, i}});
      AdapterEntry& adapter = table.adapters.back();
      const int64_t rank = a->shape.rows();
      table.entries.push_back({names.a, Shape{rank, base.shape.cols()}, &adapter.update.a});
      table.entries.back().layer = base.layer;
      table.entries.push_back({names.b, Shape{base.shape.rows(), rank}, &adapter.update.b});
      table.entries.back().rows = base.rows;
      table.entries.back().layer = base.layer;
    }
  }
}

}  // namespace

TensorTable tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  TensorTable table = TableBuilder(checkpoint, spec).build();
  add_adapters(checkpoint, spec, table);
  return table;
}

}  // namespace limpid
