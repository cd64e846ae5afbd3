// The forward pass of every decoder-only transformer that a DecoderSpec can describe (Vaswani et
// al. 2017; Radford et al. 2019; Touvron et al. 2023; Grattafiori et al. 2024). A step runs T
// tokens. The tokens may belong to any mix of sequences ("ragged" batch); only attention looks at
// which token belongs to which sequence.
//
// A block adds two updates to the residual stream x [T, d_model]:
//   h = x + wo(attention(rope(wq n), rope(wk n), wv n))   with n = norm(x)
//   x = h + w_down(silu(w_gate m) * (w_up m))             with m = norm(h)
// Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245) has fewer K and V heads than Q
// heads: Q head i reads K and V head i / (n_heads / n_kv_heads).
#include "model/decoder.h"

#include <array>
#include <cmath>

namespace limpid {
namespace {

// Returns the function between the two matrices of an MLP without a gate.
UnaryKind activation_of(MlpKind mlp) {
  switch (mlp) {
    case MlpKind::kGeluErf:
      return UnaryKind::kGeluErf;
    case MlpKind::kRelu:
      return UnaryKind::kRelu;
    case MlpKind::kSilu:
      return UnaryKind::kSilu;
    default:
      return UnaryKind::kGeluTanh;
  }
}

// One forward pass: it holds the executor, the spec and the weights, so that the methods below read
// like the formulas. `observe` hands intermediate results to an observer, if there is one.
class ForwardPass {
 public:
  ForwardPass(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
              KvStorage& kv)
      : ex_(executor), spec_(spec), weights_(weights), kv_(kv) {}

  // Runs all layers. After the last layer only the rows whose logits are requested continue: in a
  // prompt of 1,000 tokens that is usually one, and the output matrix is the largest of all.
  Activation run(PassResult result) {
    Activation x = embed();  // [T, d_model]
    for (int64_t layer = 0; layer < spec_.n_layers; ++layer) {
      const BlockWeights& w = weights_.blocks[layer];

      Activation attended = attention(norm(x, w.attn_norm, w.attn_norm_bias), w, layer);
      Activation h = ex_.add(x, attended);
      ex_.observe("attn_residual", layer, h);

      Activation fed = mlp(norm(h, w.ffn_norm, w.ffn_norm_bias), w);
      x = ex_.add(h, fed);
      ex_.observe("ffn_residual", layer, x);
    }
    x = ex_.select_outputs(x);  // [n_outputs, d_model]
    if (weights_.output_norm) x = norm(x, weights_.output_norm, weights_.output_norm_bias);
    ex_.observe("output_norm", -1, x);
    if (result == PassResult::kHidden) return x;
    Activation logits = project(x, weights_.output, Weight{});  // [n_outputs, vocab_size]
    ex_.observe("logits", -1, logits);
    return logits;
  }

 private:
  Activation embed() {
    Activation x = ex_.embed(weights_.token_embedding);
    if (spec_.position == PositionKind::kLearned)
      x = ex_.add(x, ex_.embed_positions(weights_.position_embedding));
    if (weights_.embedding_norm) x = norm(x, weights_.embedding_norm, weights_.embedding_norm_bias);
    ex_.observe("embedding", -1, x);
    return x;
  }

  // RMSNorm (Zhang & Sennrich 2019) or LayerNorm (Ba et al. 2016), by the spec.
  Activation norm(const Activation& x, const Weight& weight, const Weight& bias) {
    if (spec_.norm == NormKind::kLayer) return ex_.layer_norm(x, weight, bias, spec_.norm_eps);
    return ex_.rms_norm(x, weight, spec_.norm_eps);
  }

  // y = x W^T + b for each projection, and the low-rank updates of W. x [T, cols], W [rows, cols]
  // -> y [T, rows]
  void linear(const Activation& x, std::span<Projection> projections) {
    ex_.linear(x, projections);
    if (weights_.updates.empty()) return;
    for (Projection& p : projections) {
      const auto updates = weights_.updates.find(p.weight.id);
      if (updates == weights_.updates.end()) continue;
      for (const LowRankUpdate& update : updates->second) p.y = ex_.add(p.y, low_rank(x, update));
    }
  }

  // scale * (x A^T) B^T
  Activation low_rank(const Activation& x, const LowRankUpdate& update) {
    const Activation product = project(project(x, update.a, {}), update.b, {});
    return ex_.scale(product, update.scale);
  }

  Activation project(const Activation& x, const Weight& weight, const Weight& bias) {
    std::array projections = {Projection{weight, bias, {}}};
    linear(x, projections);
    return std::move(projections[0].y);
  }

  // Attention of one layer, with its projections. x [T, d_model] -> [T, d_model]
  Activation attention(const Activation& x, const BlockWeights& w, int64_t layer) {
    std::array qkv = {Projection{w.wq, w.bq, {}}, Projection{w.wk, w.bk, {}},
                      Projection{w.wv, w.bv, {}}};
    linear(x, qkv);
    Activation q = std::move(qkv[0].y);        // [T, n_heads * head_dim]
    Activation k = std::move(qkv[1].y);        // [T, n_kv_heads * head_dim]
    const Activation v = std::move(qkv[2].y);  // [T, n_kv_heads * head_dim]
    if (w.q_norm) q = ex_.rms_norm(q, w.q_norm, spec_.norm_eps);
    if (w.k_norm) k = ex_.rms_norm(k, w.k_norm, spec_.norm_eps);
    if (spec_.position == PositionKind::kRope) {
      q = ex_.rope(q, weights_.rope, spec_.head_dim);
      k = ex_.rope(k, weights_.rope, spec_.head_dim);
    }
    const AttentionShape shape{spec_.n_heads, spec_.n_kv_heads, spec_.head_dim, scale(layer)};
    const Activation heads = ex_.attention(q, k, v, kv_, layer, shape);
    ex_.observe("attn_heads", layer, heads);
    return project(heads, w.wo, w.bo);
  }

  // Returns the factor of q . k, usually 1 / sqrt(head_dim). Some models divide it by the number of
  // the layer as well: Mistral's GPT-2 (stanford-crfm) does so to train in half precision.
  float scale(int64_t layer) const {
    const float scale = spec_.attention_scale > 0
                            ? spec_.attention_scale
                            : 1.0F / std::sqrt(static_cast<float>(spec_.head_dim));
    return spec_.scale_by_inverse_layer ? scale / static_cast<float>(layer + 1) : scale;
  }

  // The feed-forward network of one layer. x [T, d_model] -> [T, d_ff] -> [T, d_model]
  Activation mlp(const Activation& x, const BlockWeights& w) {
    if (spec_.mlp != MlpKind::kSwiGlu) {
      return project(ex_.unary(activation_of(spec_.mlp), project(x, w.w_up, w.b_up)), w.w_down,
                     w.b_down);
    }
    std::array gate_up = {Projection{w.w_gate, w.b_gate, {}}, Projection{w.w_up, w.b_up, {}}};
    linear(x, gate_up);
    return project(ex_.swiglu(gate_up[0].y, gate_up[1].y), w.w_down, w.b_down);
  }

  Executor& ex_;
  const DecoderSpec& spec_;
  const DecoderWeights& weights_;
  KvStorage& kv_;
};

}  // namespace

Activation forward(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
                   KvStorage& kv, PassResult result) {
  return ForwardPass(executor, spec, weights, kv).run(result);
}

}  // namespace limpid
