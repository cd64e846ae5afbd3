// Causal attention of one document, forward and backward. A head is narrower than a vector, so the
// lanes are positions: everything that has to be summed over features or keys is summed over rows.
#pragma once

#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/matrix_product.h"

namespace limpid::LIMPID_ISA {

using microgpt::AttentionScratch;
using microgpt::FastDocument;
using microgpt::FastModel;
using microgpt::LayerActivations;

// The lanes of positions `first`, `first` + 1, ... that may look at `key`.
template <typename T>
inline auto may_see(int64_t first, int64_t key) {
  Vector<T> position = {};
  for (int i = 0; i < kLanes<T>; ++i) position[i] = static_cast<T>(first + i);
  return position >= static_cast<T>(key);
}

// Over keys, of each position: scores [n, positions] become probabilities, 0 for later keys.
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

template <typename T>
inline void attention_forward(const FastModel<T>& model, const LayerActivations<T>& layer,
                              const FastDocument& document, int64_t index) {
  const AttentionScratch<T>& scratch = model.attention;
  const int64_t width = model.width;
  const int64_t positions = model.positions;
  const int64_t row = document.begin * width;
  const T scale = T{1} / static_cast<T>(__builtin_sqrt(static_cast<double>(model.head_dim)));
  turn<T>(layer.q + row, width, positions, width, scratch.q_columns, positions);
  for (int64_t head = 0; head < model.n_head; ++head) {
    const int64_t feature = head * model.head_dim;
    T* probabilities = layer.probabilities + (index * model.n_head + head) * positions * positions;
    product<T>(document.n, positions, model.head_dim, {layer.k + row + feature, width, 1},
               {scratch.q_columns + feature * positions, positions}, probabilities, positions);
    causal_softmax<T>(probabilities, document.n, positions, scale);
    product<T>(model.head_dim, positions, document.n, {layer.v + row + feature, 1, width},
               {probabilities, positions}, scratch.attended_columns + feature * positions,
               positions);
  }
  turn<T>(scratch.attended_columns, positions, width, positions, scratch.q_columns, width);
  for (int64_t i = 0; i < document.n * width; i += kLanes<T>) {
    at(layer.attended + row + i) = at(scratch.q_columns + i);
  }
}

// d loss / d scores from d loss / d probabilities, both [n, positions]; in place.
template <typename T>
inline void softmax_backward(const T* probabilities, T* gradient, int64_t n, int64_t stride,
                             T scale) {
  for (int64_t first = 0; first < stride; first += kLanes<T>) {
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

// From `attended_gradient` (rows) the gradients of q, k and v (columns, in the scratch).
template <typename T>
inline void attention_backward(const FastModel<T>& model, const LayerActivations<T>& layer,
                               const FastDocument& document, int64_t index,
                               const T* attended_gradient) {
  const AttentionScratch<T>& scratch = model.attention;
  const int64_t width = model.width;
  const int64_t positions = model.positions;
  const int64_t row = document.begin * width;
  const int64_t n = document.n;
  const T scale = T{1} / static_cast<T>(__builtin_sqrt(static_cast<double>(model.head_dim)));
  turn<T>(attended_gradient + row, width, positions, width, scratch.attended_columns, positions);
  for (int64_t head = 0; head < model.n_head; ++head) {
    const int64_t feature = head * model.head_dim;
    const int64_t columns = feature * positions;
    const T* probabilities =
        layer.probabilities + (index * model.n_head + head) * positions * positions;
    // d p = v . d out; d q = sum of k d s; d v = sum of p d out; d k = sum of q d s.
    product<T>(n, positions, model.head_dim, {layer.v + row + feature, width, 1},
               {scratch.attended_columns + columns, positions}, scratch.scores, positions);
    softmax_backward<T>(probabilities, scratch.scores, n, positions, scale);
    product<T>(model.head_dim, positions, n, {layer.k + row + feature, 1, width},
               {scratch.scores, positions}, scratch.dq_columns + columns, positions);
    turn<T>(probabilities, positions, positions, positions, scratch.turned, positions);
    product<T>(model.head_dim, positions, n, {attended_gradient + row + feature, 1, width},
               {scratch.turned, positions}, scratch.dv_columns + columns, positions);
    turn<T>(scratch.scores, positions, positions, positions, scratch.turned, positions);
    product<T>(model.head_dim, positions, n, {layer.q + row + feature, 1, width},
               {scratch.turned, positions}, scratch.dk_columns + columns, positions);
  }
}

}  // namespace limpid::LIMPID_ISA
