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
// Example: an embedding c = (3, 4) alone, g = (1, 1), w_v = (1, 0): rms(x) = 3.54, u = (0.283, 0),
// and the embedding's part is 0.849, which is the logit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "insight/probe_executor.h"
#include "model/model.h"

namespace limpid {

// The parts of one logit.
struct Attribution {
  int64_t position = 0;      // the logit predicts the token after this one
  int32_t token = 0;         // whose logit it is
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
// first.
class LayerRows {
 public:
  LayerRows() = default;
  LayerRows(int64_t n_layers, int64_t most_numbers, ThreadPool& pool);

  void append(size_t layer, std::span<const float> rows, ThreadPool& pool);
  void clear() { std::ranges::fill(sizes_, 0); }
  void clear(size_t layer) { sizes_[layer] = 0; }
  std::span<const float> operator[](size_t layer) const {
    return room_.as<float>().subspan(layer * most_numbers_, sizes_[layer]);
  }

 private:
  size_t most_numbers_ = 0;  // of a layer
  AlignedBuffer room_;       // [n_layers, most_numbers]
  std::vector<size_t> sizes_;
};

// The components of the residual stream for some rows (tokens).
struct StreamParts {
  StreamParts() = default;
  StreamParts(const DecoderSpec& spec, int64_t most_rows, ThreadPool& pool);
  void clear();

  LayerRows embedding;  // one layer: [n, d_model]
  LayerRows heads;      // [n, n_heads * head_dim] of each layer
  LayerRows attention;  // [n, d_model] of each layer
  LayerRows mlps;       // [n, d_model] of each layer
  LayerRows stream;     // one layer: [n, d_model], their sum, which the final norm reads
};

// Which logit of a row.
struct WantedLogit {
  int64_t position = 0;
  int32_t token = 0;
  double logit = 0;
};

// The parts of the wanted logits, one of each row. The output projections are decoded layer by
// layer and multiplied with the directions: n * n_layers * d_model * n_heads * head_dim products.
std::vector<Attribution> attribute(const Model& model, const ProbeExecutor& probe,
                                   const StreamParts& parts, std::span<const WantedLogit> wanted,
                                   ThreadPool& pool);

}  // namespace limpid
