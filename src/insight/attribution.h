// Who said it: the part that each component of a model has in the logit of a token (direct logit
// attribution; Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
//
// The residual stream that the final norm reads is a sum: the embedding, the output of every
// attention head and the output of every MLP.
//   x = embedding + sum over layers (sum over heads W_O^h z^h + b_O + mlp)
// The logit of token v is w_v . norm(x). A norm is linear once its scale is fixed to the one that
// x gave it, s = 1 / rms(x): norm(c) = s g * c (a LayerNorm subtracts the mean first and adds its
// bias b at the end). So, with a fixed direction u in the residual stream,
//   logit = sum over components c . u  +  b . w_v      with u = s (g * w_v)
// and each term is the component's part. The parts are direct: what a head does to the logit by
// way of later layers is in the parts of those.
//
// A quantised model rounds the input of each product to 8 bits, so its logit is not quite the
// product of w_v and norm(x). What rounding adds is a part too: of each output projection in
// `attention_rest`, and of the output matrix in `rounding`.
//
// The difference of two logits is attributed in the same way, with w_v - w_v' in place of w_v: what
// speaks for one token and against another. What both share, such as the parts that make every
// noun likely, cancels out.
//
// Example: an embedding c = (3, 4) alone, g = (1, 1), w_v = (1, 0): rms(x) = 3.54, u = (0.283, 0),
// and the embedding's part is 0.849, which is the logit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "insight/probe_executor.h"
#include "model/model.h"

namespace limpid {

// The parts of one logit, or of the difference of two.
struct Attribution {
  int64_t position = 0;      // the logit predicts the token after this one
  int32_t token = 0;         // whose logit it is
  int32_t against = -1;      // whose logit is subtracted; -1: none
  double logit = 0;          // as the model computed it
  double embedding = 0;      // token and position
  double norm_bias = 0;      // b . w_v
  std::vector<float> heads;  // [n_layers, n_heads]
  // [n_layers]: what attention adds beyond its heads: the bias of the output projection, a low-rank
  // update of it, and in a quantised model the rounding of activations.
  std::vector<float> attention_rest;
  std::vector<float> mlps;  // [n_layers]
  // logit - w_v . norm(x): the rounding in the product with the output matrix. Less than 1e-4 where
  // that matrix is not quantised.
  double rounding = 0;

  // All parts together. It departs from `logit` by less than 1e-4, the rounding of sums in f32.
  double sum() const;
};

// Copies of an activation of each layer, appended row by row to room that is made once. New memory
// costs more than the copies do. So the room is one block of large pages, and all threads touch it
// first. An Explainer keeps queries, keys and streams so; an Attributor needs no copies.
class LayerRows {
 public:
  LayerRows() = default;
  LayerRows(int64_t n_layers, int64_t most_numbers, ThreadPool& pool);

  void append(size_t layer, std::span<const float> rows, ThreadPool& pool);
  void clear(size_t layer) { sizes_[layer] = 0; }
  std::span<const float> operator[](size_t layer) const {
    return room_.as<float>().subspan(layer * most_numbers_, sizes_[layer]);
  }

 private:
  size_t most_numbers_ = 0;  // of a layer
  AlignedBuffer room_;       // [n_layers, most_numbers]
  std::vector<size_t> sizes_;
};

// Which logit of a row, or what remains of it when the other token's is subtracted.
struct WantedLogit {
  int64_t position = 0;
  int32_t token = 0;
  double logit = 0;
};

// Attributes the logits of the tokens of a step, while the step runs. The direction of a logit, all
// but its scale, is known before the step, because the token that follows is known. So each
// activation gives its parts when it is observed, and no copy of it is kept. Only the token after
// the last one may be unknown until the step is done: the activations of that row are copied.
//
// For each layer its output projection is decoded and multiplied with the directions of n different
// tokens: n * d_model * n_heads * head_dim products.
class Attributor {
 public:
  // The pool's threads compute; all three must live as long as this object. The logit of `against`
  // is subtracted from all logits; -1: none.
  Attributor(const Model& model, const ProbeExecutor& probe, ThreadPool& pool, int32_t against);

  // The activations that follow have a row for each of these tokens, whose logits are attributed.
  // The last one may be -1: not known yet. No tokens: activations are ignored.
  void begin(std::span<const int32_t> tokens);
  // kEmbedding, kAttnHeads, kAttnOutput or kFfnOutput: [n tokens, columns].
  void see(Place place, int64_t layer, std::span<const float> values);
  // The parts of the wanted logits, one of each token. `streams` [n tokens, d_model] is what the
  // final norm read.
  std::vector<Attribution> end(std::span<const float> streams, std::span<const WantedLogit> wanted);

 private:
  struct SeenRow {
    Place place;
    int64_t layer;
    std::vector<float> values;
  };

  // The w_v of a token as f32.
  std::vector<float> output_row(int32_t token) const;
  // u / s for the logit of `token`; and b . w_v.
  std::vector<float> direction_of_logit(int32_t token, double& norm_bias) const;
  // s, where the final norm reads `stream` [d_model].
  double scale(std::span<const float> stream) const;
  std::span<const float> direction(int64_t row) const;
  void add_heads(int64_t layer, std::span<const float> heads);
  void decode_output_projection(int64_t layer);
  void finish(std::span<const float> streams, std::span<const WantedLogit> wanted);

  const Model& model_;
  const ProbeExecutor& probe_;
  const DecoderSpec& spec_;
  ThreadPool& pool_;
  const int64_t width_;  // of all heads
  const int32_t against_;
  const bool is_centred_;     // the final norm subtracts the mean
  const WeightSource& head_;  // the output matrix
  const StoredRows head_rows_;
  std::vector<float> gain_;  // of the final norm; empty: the model has none
  std::vector<float> bias_;

  int64_t n_rows_ = 0;                     // of each activation
  bool last_is_open_ = false;              // the last row's token is not known
  std::vector<SeenRow> last_rows_;         // of it
  std::vector<Attribution> attributions_;  // of the other rows
  std::vector<int64_t> direction_of_;      // of each of them: its row of directions_
  std::vector<float> directions_;          // u / s of each different token [n, d_model]
  std::vector<double> of_heads_;           // of each row: the sum over the heads of a layer
  std::vector<float> wo_;                  // [d_model, width], of the layer in progress
  std::vector<float> in_heads_;            // (W_O)^T u / s [n, width], of that layer
  std::vector<float> scratch_;
};

}  // namespace limpid
