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

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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
// like the formulas. `named` shows a result under its name to the executor, which may replace it.
class ForwardPass {
 public:
  ForwardPass(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
              KvStorage* kv, std::span<const double> adapter_factors)
      : ex_(executor), spec_(spec), weights_(weights), kv_(kv), adapter_factors_(adapter_factors) {}

  // After the last layer only the rows whose logits are requested continue: in a prompt of 1,000
  // tokens that is usually one, and the output matrix is the largest of all.
  Activation run(PassResult result, LayerRange layers, Activation stream) {
    Activation x = layers.begin == 0 ? embed() : std::move(stream);  // [T, d_model]
    const int64_t end = std::min(layers.end, spec_.n_layers);
    for (int64_t layer = layers.begin; layer < end; ++layer) {
      const BlockWeights& w = weights_.blocks[layer];

      const Activation attended = named(Place::kAttnOutput, layer, attention(x, w, layer));
      const Activation h = named(Place::kAttnResidual, layer, ex_.add(x, attended));

      const Activation fed = named(Place::kFfnOutput, layer, mlp(h, w, layer));
      x = named(Place::kFfnResidual, layer, ex_.add(h, fed));
    }
    return end == spec_.n_layers ? head(ex_.select_outputs(x), result) : std::move(x);
  }

  // The final norm and the output matrix. x [n_outputs, d_model] -> [n_outputs, vocab_size]
  Activation head(Activation x, PassResult result) {
    if (weights_.output_norm) x = norm(x, weights_.output_norm, weights_.output_norm_bias);
    x = named(Place::kOutputNorm, -1, std::move(x));
    if (result == PassResult::kHidden) return x;
    return named(Place::kLogits, -1, project(x, weights_.output, Weight{}));
  }

  // The logits in parts. Low-rank updates of the output matrix are added to all logits at once.
  void head_in_parts(Activation x, const SeePart& see) {
    if (weights_.updates.contains(weights_.output.id)) {
      const Activation y = head(std::move(x), PassResult::kLogits);
      return ex_.show_whole(y, see);
    }
    ex_.linear_in_parts(head(std::move(x), PassResult::kHidden), weights_.output, see);
  }

 private:
  Activation named(Place place, int64_t layer, Activation x) {
    ex_.intervene(place, layer, x);
    ex_.observe(place, layer, x);
    return x;
  }

  Activation embed() {
    Activation x = ex_.embed(weights_.token_embedding, EmbedBy::kTokenId);
    if (spec_.position == PositionKind::kLearned)
      x = ex_.add(x, ex_.embed(weights_.position_embedding, EmbedBy::kPosition));
    if (weights_.embedding_norm) x = norm(x, weights_.embedding_norm, weights_.embedding_norm_bias);
    return named(Place::kEmbedding, -1, std::move(x));
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
      for (const LowRankUpdate& update : updates->second) {
        const double factor =
            adapter_factors_.empty() ? 1 : adapter_factors_[static_cast<size_t>(update.adapter)];
        if (factor != 0) p.y = ex_.add(p.y, low_rank(x, update, update.scale * factor));
      }
    }
  }

  // scale * (x A^T) B^T
  Activation low_rank(const Activation& x, const LowRankUpdate& update, double scale) {
    const Activation product = project(project(x, update.a, {}), update.b, {});
    return ex_.scale(product, static_cast<float>(scale));
  }

  Activation project(const Activation& x, const Weight& weight, const Weight& bias) {
    std::array projections = {Projection{weight, bias, {}}};
    linear(x, projections);
    return std::move(projections[0].y);
  }

  // Attention of one layer, with its norm and its projections. x [T, d_model] -> [T, d_model]
  Activation attention(const Activation& x, const BlockWeights& w, int64_t layer) {
    const Activation n = named(Place::kAttnNorm, layer, norm(x, w.attn_norm, w.attn_norm_bias));
    std::array qkv = {Projection{w.wq, w.bq, {}}, Projection{w.wk, w.bk, {}},
                      Projection{w.wv, w.bv, {}}};
    linear(n, qkv);
    Activation q = std::move(qkv[0].y);  // [T, n_heads * head_dim]
    Activation k = std::move(qkv[1].y);  // [T, n_kv_heads * head_dim]
    if (w.q_norm) q = ex_.rms_norm(q, w.q_norm, spec_.norm_eps);
    if (w.k_norm) k = ex_.rms_norm(k, w.k_norm, spec_.norm_eps);
    if (spec_.position == PositionKind::kRope) {
      q = ex_.rope(q, weights_.rope, spec_.head_dim);
      k = ex_.rope(k, weights_.rope, spec_.head_dim);
    }
    q = named(Place::kQuery, layer, std::move(q));
    k = named(Place::kKey, layer, std::move(k));
    const Activation v = named(Place::kValue, layer, std::move(qkv[2].y));  // as k
    const AttentionShape shape{spec_.n_heads, spec_.n_kv_heads, spec_.head_dim,
                               attention_scale(spec_, layer)};
    const Activation heads =
        named(Place::kAttnHeads, layer, ex_.attention(q, k, v, *kv_, layer, shape));
    return project(heads, w.wo, w.bo);
  }

  // The feed-forward network of one layer, with its norm. h [T, d_model] -> [T, d_model]
  Activation mlp(const Activation& h, const BlockWeights& w, int64_t layer) {
    const Activation m = named(Place::kFfnNorm, layer, norm(h, w.ffn_norm, w.ffn_norm_bias));
    const Activation hidden = named(Place::kFfnHidden, layer, neurons(m, w));
    return project(hidden, w.w_down, w.b_down);
  }

  // The hidden layer of the MLP. m [T, d_model] -> [T, d_ff]
  Activation neurons(const Activation& m, const BlockWeights& w) {
    if (spec_.mlp != MlpKind::kSwiGlu)
      return ex_.unary(activation_of(spec_.mlp), project(m, w.w_up, w.b_up));
    std::array gate_up = {Projection{w.w_gate, w.b_gate, {}}, Projection{w.w_up, w.b_up, {}}};
    linear(m, gate_up);
    return ex_.swiglu(gate_up[0].y, gate_up[1].y);
  }

  Executor& ex_;
  const DecoderSpec& spec_;
  const DecoderWeights& weights_;
  KvStorage* kv_;  // null: the pass has no attention
  const std::span<const double> adapter_factors_;
};

}  // namespace

float attention_scale(const DecoderSpec& spec, int64_t layer) {
  const float scale = spec.attention_scale > 0
                          ? spec.attention_scale
                          : 1.0F / std::sqrt(static_cast<float>(spec.head_dim));
  return spec.scale_by_inverse_layer ? scale / static_cast<float>(layer + 1) : scale;
}

void read_out(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
              Activation stream, const SeePart& see) {
  ForwardPass(executor, spec, weights, nullptr, {}).head_in_parts(std::move(stream), see);
}

Activation forward(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
                   KvStorage& kv, PassResult result, std::span<const double> adapter_factors,
                   LayerRange layers, Activation stream) {
  return ForwardPass(executor, spec, weights, &kv, adapter_factors)
      .run(result, layers, std::move(stream));
}

}  // namespace limpid
