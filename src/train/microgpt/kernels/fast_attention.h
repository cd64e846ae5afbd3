// Causal attention of one document, for heads that do not fit lane_attention.h. Scores and
// probabilities are [key, position] with positions in the lanes. A softmax over keys is then a sum
// over rows, and no operation combines lanes.
#pragma once

#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/lane_attention.h"
#include "train/microgpt/kernels/matrix_product.h"

namespace limpid::LIMPID_ISA {

using microgpt::AttentionScratch;

// Selects the lanes of positions `first`, `first` + 1, … that may attend to `key`.
template <typename T>
inline auto may_see(int64_t first, int64_t key) {
  Vector<T> position = {};
  for (int i = 0; i < kLanes<T>; ++i) position[i] = static_cast<T>(first + i);
  return position >= static_cast<T>(key);
}

// Softmax over keys for each position: scores [n, positions] become probabilities, which are 0 for
// later keys.
template <typename T>
inline void causal_softmax(T* scores, int64_t n, int64_t stride, T scale) {
  for (int64_t first = 0; first < n; first += kLanes<T>) {
    const int64_t n_keys = first + kLanes<T> < n ? first + kLanes<T> : n;
    Vector<T> largest = at(scores + first);
    for (int64_t key = 1; key < n_keys; ++key) {
      const Vector<T> score = at(scores + key * stride + first);
      largest = (may_see<T>(first, key) & (score > largest)) ? score : largest;
    }
    Vector<T> total = {};
    for (int64_t key = 0; key < n_keys; ++key) {
      T* score = scores + key * stride + first;
      const Vector<T> power = exp_of<T>((at(score) - largest) * scale);
      at(score) = may_see<T>(first, key) ? power : Vector<T>{};
      total += at(score);
    }
    const Vector<T> inverse = T{1} / total;
    for (int64_t key = 0; key < n_keys; ++key) at(scores + key * stride + first) *= inverse;
    for (int64_t key = n_keys; key < n; ++key) at(scores + key * stride + first) = Vector<T>{};
  }
}

// The features of one head, and the whole vectors that contain them.
struct HeadSpan {
  int64_t begin, end;
  int64_t first, last;
};

template <typename T>
inline HeadSpan head_span(const FastModel<T>& model, int64_t head) {
  const int64_t begin = head * model.shape.head_dim();
  const int64_t end = begin + model.shape.head_dim();
  constexpr int64_t kN = kLanes<T>;
  return {begin, end, begin / kN * kN, (end + kN - 1) / kN * kN};
}

// Copies rows with only the features of one head. Features of other heads in the same vectors
// become 0, so that they add nothing to products with the rows.
template <typename T>
inline RightMatrix<T> only_head(const FastModel<T>& model, const HeadSpan& span, const T* rows,
                                int64_t stride, int64_t n) {
  T* masked = model.attention.masked;
  for (int64_t first = span.first; first < span.last; first += kLanes<T>) {
    const auto inside = may_see<T>(first, span.begin) & ~may_see<T>(first, span.end);
    for (int64_t row = 0; row < n; ++row) {
      const Vector<T> value = at(rows + row * stride + first);
      at(masked + row * model.width + first) = inside ? value : Vector<T>{};
    }
  }
  return {masked + span.first, model.width};
}

template <typename T>
inline void set_zero(T* numbers, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<T>) at(numbers + i) = Vector<T>{};
}

// The forward pass of one document. For each head, scores = K Q^T is one product [n keys,
// positions]: the transposed q in scratch.columns has positions in its lanes. After the softmax,
// attended += P^T V, with the values of other heads masked to 0. layer.probabilities keeps P for
// the backward pass.
template <typename T>
inline void attention_forward(const FastModel<T>& model, const LayerActivations<T>& layer,
                              const FastDocument& document, int64_t index) {
  const AttentionScratch<T>& scratch = model.attention;
  const int64_t width = model.width;
  const int64_t positions = model.positions;
  const int64_t stride = 3 * width;
  const int64_t row = document.begin * width;
  const int64_t n = document.n;
  const T scale = score_scale(model);
  const T* q = layer.qkv + document.begin * stride;
  const T* k = q + width;
  const T* v = k + width;
  turn<T>(q, stride, positions, width, scratch.columns, positions);
  set_zero(layer.attended + row, n * width);
  for (int64_t head = 0; head < model.shape.n_head; ++head) {
    const HeadSpan span = head_span(model, head);
    T* probabilities =
        layer.probabilities + (index * model.shape.n_head + head) * positions * positions;
    product<T>(n, positions, model.shape.head_dim(), {k + span.begin, stride, 1},
               {scratch.columns + span.begin * positions, positions}, probabilities, positions);
    causal_softmax<T>(probabilities, n, positions, scale);
    T* attended = layer.attended + row + span.first;
    product<T, true>(n, span.last - span.first, n, {probabilities, 1, positions},
                     only_head(model, span, v, stride, n), attended, width, attended);
  }
}

// Computes d loss / d scores from d loss / d probabilities, both [n, positions], in place. For p =
// softmax(s): d s = p (d p - sum of p d p), where the sum is over the keys of one position.
template <typename T>
inline void softmax_backward(const T* probabilities, T* gradient, int64_t n, int64_t stride,
                             T scale) {
  for (int64_t first = 0; first < n; first += kLanes<T>) {
    Vector<T> mean = {};
    for (int64_t key = 0; key < n; ++key) {
      const int64_t i = key * stride + first;
      mean += at(probabilities + i) * at(gradient + i);
    }
    for (int64_t key = 0; key < n; ++key) {
      const int64_t i = key * stride + first;
      at(gradient + i) = at(probabilities + i) * (at(gradient + i) - mean) * scale;
    }
  }
}

// Computes layer.d_qkv from model.d_attended. Per head: d p = V d_attended^T; d v = P d_attended; d
// s by softmax_backward; d q = d s^T K; d k = d s Q. The parts 0, 1 and 2 of d_qkv are those of q,
// k and v.
template <typename T>
inline void attention_backward(const FastModel<T>& model, const LayerActivations<T>& layer,
                               const FastDocument& document, int64_t index) {
  const AttentionScratch<T>& scratch = model.attention;
  const int64_t width = model.width;
  const int64_t positions = model.positions;
  const int64_t stride = 3 * width;
  const int64_t n = document.n;
  const T scale = score_scale(model);
  const T* d_attended = model.d_attended + document.begin * width;
  const T* q = layer.qkv + document.begin * stride;
  T* d_qkv = layer.d_qkv + document.begin * stride;
  turn<T>(d_attended, width, positions, width, scratch.columns, positions);
  set_zero(d_qkv, n * stride);
  for (int64_t head = 0; head < model.shape.n_head; ++head) {
    const HeadSpan span = head_span(model, head);
    const T* probabilities =
        layer.probabilities + (index * model.shape.n_head + head) * positions * positions;
    const auto add = [&](LeftMatrix<T> a, const T* rows, int64_t rows_stride, int64_t part) {
      T* to = d_qkv + part * width + span.first;
      product<T, true>(n, span.last - span.first, n, a,
                       only_head(model, span, rows, rows_stride, n), to, stride, to);
    };
    // d p = v . d out; d v = sum of p d out; d q = sum of d s k; d k = sum of d s q.
    product<T>(n, positions, model.shape.head_dim(), {q + 2 * width + span.begin, stride, 1},
               {scratch.columns + span.begin * positions, positions}, scratch.scores, positions);
    softmax_backward<T>(probabilities, scratch.scores, n, positions, scale);
    add({probabilities, positions, 1}, d_attended, width, 2);
    add({scratch.scores, 1, positions}, q + width, stride, 0);
    add({scratch.scores, positions, 1}, q, stride, 1);
  }
}

}  // namespace limpid::LIMPID_ISA
