#include "train/microgpt/scalar_gpt.h"

#include <cmath>

namespace limpid::microgpt {
namespace {

constexpr double kNormEpsilon = 1e-5;

Row add(const Row& a, const Row& b) {
  return a.graph().collect(a.size(), [&](size_t i) { a[i] + b[i]; });
}

Row relu(const Row& x) {
  return x.graph().collect(x.size(), [&](size_t i) { x[i].relu(); });
}

Row scale(const Row& x, Value factor) {
  return x.graph().collect(x.size(), [&](size_t i) { x[i] * factor; });
}

// RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467) without weights.
Row rms_norm(const Row& x) {
  const Value mean_square = x.graph().dot(x, x) / static_cast<double>(x.size());
  return scale(x, (mean_square + kNormEpsilon).pow(-0.5));
}

// softmax(x)[i] = exp(x[i]) / sum of exp(x[j]). Subtracting the largest x from all does not change
// the result.
Row softmax(const Row& x) {
  Graph& graph = x.graph();
  const double largest = std::ranges::max(x.data());
  const Row below = graph.collect(x.size(), [&](size_t i) { x[i] - largest; });
  const Row powers = graph.collect(x.size(), [&](size_t i) { below[i].exp(); });  // at most 1
  return scale(powers, graph.sum(powers).pow(-1.0));
}

}  // namespace

ScalarGpt::ScalarGpt(Graph& graph, const Shape& shape, const Matrices& matrices)
    : graph_(graph),
      shape_(shape),
      matrices_(matrices),
      keys_(static_cast<size_t>(shape.n_layer)),
      values_(static_cast<size_t>(shape.n_layer)) {}

void ScalarGpt::begin_context() {
  position_ = 0;
  for (auto& keys : keys_) keys.clear();
  for (auto& values : values_) values.clear();
}

Row ScalarGpt::parameter_row(const Matrix& matrix, int64_t row) {
  return graph_.row(static_cast<NodeId>(matrix.row(row)), static_cast<size_t>(matrix.cols));
}

// y = W x: one dot product per row.
Row ScalarGpt::linear(const Matrix& weights, const Row& x) {
  return graph_.dots(static_cast<NodeId>(weights.offset), static_cast<size_t>(weights.rows), x);
}

// softmax(q k / sqrt(head_dim)) v, each head on its own slice.
Row ScalarGpt::attention(const Row& q, const std::vector<Row>& keys,
                         const std::vector<Row>& values) {
  const auto head_dim = static_cast<size_t>(shape_.head_dim());
  const double root = std::sqrt(static_cast<double>(head_dim));
  const size_t first_head = head_weights_.size();
  for (size_t at = 0; at < q.size(); at += head_dim) {
    const Row dots = graph_.collect(keys.size(), [&](size_t t) {
      graph_.dot(q.slice(at, head_dim), keys[t].slice(at, head_dim));
    });
    head_weights_.push_back(
        softmax(graph_.collect(dots.size(), [&](size_t t) { dots[t] / root; })));
  }
  return graph_.collect(q.size(), [&](size_t j) {
    column_.clear();
    for (const Row& value : values) column_.push_back(value[j]);
    graph_.dot(head_weights_[first_head + j / head_dim], column_);
  });
}

// One position of the model. The keys and values of earlier positions are kept in keys_ and
// values_, so each call only computes the new position and attends to all positions so far.
Row ScalarGpt::logits(Token token) {
  Row x = add(parameter_row(matrices_.wte, token), parameter_row(matrices_.wpe, position_));
  x = rms_norm(x);
  trace_.assign(1, x);
  head_weights_.clear();
  for (size_t i = 0; i < matrices_.layers.size(); ++i) {
    const LayerMatrices& layer = matrices_.layers[i];

    const Row before_attention = x;
    x = rms_norm(x);
    const Row q = linear(layer.attn_wq, x);
    keys_[i].push_back(linear(layer.attn_wk, x));
    values_[i].push_back(linear(layer.attn_wv, x));
    const Row attended = attention(q, keys_[i], values_[i]);
    x = add(linear(layer.attn_wo, attended), before_attention);

    const Row before_mlp = x;
    x = rms_norm(x);
    const Row hidden = relu(linear(layer.mlp_fc1, x));
    x = add(linear(layer.mlp_fc2, hidden), before_mlp);
    for (const Row& row : {q, keys_[i].back(), values_[i].back(), attended, before_mlp, hidden, x})
      trace_.push_back(row);
  }
  ++position_;
  trace_.push_back(linear(matrices_.lm_head, x));
  return trace_.back();
}

// The cross entropy of one prediction: 0 if the target had probability 1, log(vocab_size) for a
// model that has learned nothing.
Value ScalarGpt::loss(Token token, Token target) {
  return -softmax(logits(token))[static_cast<size_t>(target)].log();
}

}  // namespace limpid::microgpt
