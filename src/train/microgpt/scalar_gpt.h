// The GPT of the article, computed with single numbers. The whole model fits on one page.
#pragma once

#include <vector>

#include "train/microgpt/dataset.h"
#include "train/microgpt/parameters.h"
#include "train/microgpt/value.h"

namespace limpid::microgpt {

// The forward pass as an expression of Values. Its derivative comes from the graph.
class ScalarGpt {
 public:
  // The first nodes of `graph` are the parameters, in the order of `matrices`. The object keeps
  // references to its arguments.
  ScalarGpt(Graph& graph, const Shape& shape, const Matrices& matrices);

  // Forgets the keys and values of earlier positions.
  void begin_context();
  // Processes one more token and returns logits [vocab_size] for the next one. The model is that of
  // Vaswani et al. 2017 (arXiv:1706.03762) with RMSNorm before each block and without biases.
  Row logits(Token token);
  // Returns - log softmax(logits(token))[target].
  Value loss(Token token, Token target);

  // The rows of the last logits(), in the order in which they were computed: x; for each layer q,
  // k, v, attended, middle (the residual stream between attention and MLP), hidden, and the
  // layer's output; the logits.
  const std::vector<Row>& trace() const { return trace_; }
  // The attention weights of the last logits(): for each layer and each head of it, those on the
  // positions so far [n_positions], which sum to 1.
  const std::vector<Row>& attention_weights() const { return head_weights_; }

 private:
  Row parameter_row(const Matrix& matrix, int64_t row);
  Row linear(const Matrix& weights, const Row& x);
  Row attention(const Row& q, const std::vector<Row>& keys, const std::vector<Row>& values);

  Graph& graph_;
  const Shape& shape_;
  const Matrices& matrices_;
  int64_t position_ = 0;
  std::vector<std::vector<Row>> keys_;    // [n_layer][position], rows of n_embd
  std::vector<std::vector<Row>> values_;  // likewise
  std::vector<Row> head_weights_;         // of the layers so far
  std::vector<Value> column_;             // one element of every value
  std::vector<Row> trace_;
};

}  // namespace limpid::microgpt
