// Causal attention for small heads: one vector of features holds whole heads. One vector is
// computed for each pair of positions, and every lane of a head holds the score of that head. The
// probabilities are thus already next to the values that they multiply, no operation waits for
// another lane, and only pairs that may attend to each other are computed.
//
// Example with 8 lanes and heads of 4 features: q * k gives 8 products, and adding within each
// group of 4 lanes gives [s0 s0 s0 s0 s1 s1 s1 s1].
#pragma once

#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

using microgpt::FastDocument;
using microgpt::FastModel;
using microgpt::LayerActivations;

// Returns in each lane the sum of the lanes of its head.
template <typename T, int kHead, int kBy = 1>
inline Vector<T> sum_of_head(Vector<T> v) {
  if constexpr (kBy < kHead) {
    v += swap_lanes<T, kBy>(v, std::make_integer_sequence<int, kLanes<T>>());
    return sum_of_head<T, kHead, 2 * kBy>(v);
  } else {
    return v;
  }
}

// The probabilities of a pair (position, key <= position), for the vector of features that begins
// at `feature`. They are position (position + 1) / 2 + key vectors after this address. Position p
// has p + 1 keys, so positions 0 to p - 1 take 1 + 2 + … + p = p (p + 1) / 2 vectors.
template <typename T>
inline T* pairs(const FastModel<T>& model, const LayerActivations<T>& layer, int64_t document,
                int64_t feature) {
  const int64_t n_pairs = model.positions * (model.positions + 1) / 2;
  return layer.probabilities + (document * model.width + feature) * n_pairs;
}

// 1 / sqrt(head_dim)
template <typename T>
inline T score_scale(const FastModel<T>& model) {
  return T{1} / static_cast<T>(root(static_cast<double>(model.shape.head_dim())));
}

// For each position: scores with all keys up to it, the softmax over them, and the weighted sum of
// the values. The largest score is subtracted before exp, so exp cannot overflow. The weighted sum
// is divided by the total at the end.
template <typename T, int kHead>
void lane_attention_forward(const FastModel<T>& model, const LayerActivations<T>& layer,
                            const FastDocument& document, int64_t index) {
  constexpr int64_t kN = kLanes<T>;
  const int64_t width = model.width;
  const int64_t stride = 3 * width;
  const T scale = score_scale(model);
  for (int64_t feature = 0; feature < width; feature += kN) {
    const T* q = layer.qkv + document.begin * stride + feature;
    const T* k = q + width;
    const T* v = k + width;
    T* row = pairs(model, layer, index, feature);
    for (int64_t position = 0; position < document.n; ++position) {
      const Vector<T> query = at(q + position * stride) * scale;
      Vector<T> largest = sum_of_head<T, kHead>(query * at(k));
      at(row) = largest;
      for (int64_t key = 1; key <= position; ++key) {
        const Vector<T> score = sum_of_head<T, kHead>(query * at(k + key * stride));
        largest = score > largest ? score : largest;
        at(row + key * kN) = score;
      }
      Vector<T> total = {};
      Vector<T> attended = {};
      for (int64_t key = 0; key <= position; ++key) {
        const Vector<T> power = exp_of<T>(at(row + key * kN) - largest);
        total += power;
        attended += power * at(v + key * stride);
        at(row + key * kN) = power;
      }
      const Vector<T> inverse = T{1} / total;
      for (int64_t key = 0; key <= position; ++key) at(row + key * kN) *= inverse;
      at(layer.attended + (document.begin + position) * width + feature) = attended * inverse;
      row += (position + 1) * kN;
    }
  }
}

// Computes layer.d_qkv from model.d_attended.
template <typename T, int kHead>
void lane_attention_backward(const FastModel<T>& model, const LayerActivations<T>& layer,
                             const FastDocument& document, int64_t index) {
  constexpr int64_t kN = kLanes<T>;
  const int64_t width = model.width;
  const int64_t stride = 3 * width;
  const T scale = score_scale(model);
  T* d_scores = model.attention.scores;
  for (int64_t feature = 0; feature < width; feature += kN) {
    const int64_t begin = document.begin * stride + feature;
    const T* q = layer.qkv + begin;
    const T* k = q + width;
    const T* v = k + width;
    T* dq = layer.d_qkv + begin;
    T* dk = dq + width;
    T* dv = dk + width;
    const T* row = pairs(model, layer, index, feature);
    for (int64_t position = 0; position < document.n; ++position) {
      const Vector<T> d_out = at(model.d_attended + (document.begin + position) * width + feature);
      at(dk + position * stride) = Vector<T>{};
      at(dv + position * stride) = Vector<T>{};
      Vector<T> mean = {};
      for (int64_t key = 0; key <= position; ++key) {
        const Vector<T> probability = at(row + key * kN);
        const Vector<T> d = sum_of_head<T, kHead>(d_out * at(v + key * stride));
        at(dv + key * stride) += probability * d_out;
        mean += probability * d;
        at(d_scores + key * kN) = d;
      }
      const Vector<T> query = at(q + position * stride) * scale;
      Vector<T> d_query = {};
      for (int64_t key = 0; key <= position; ++key) {
        const Vector<T> d = at(row + key * kN) * (at(d_scores + key * kN) - mean);
        d_query += d * at(k + key * stride);
        at(dk + key * stride) += d * query;
      }
      at(dq + position * stride) = d_query * scale;
      row += (position + 1) * kN;
    }
  }
}

template <typename T>
using Attention = void (*)(const FastModel<T>& model, const LayerActivations<T>& layer,
                           const FastDocument& document, int64_t index);

template <typename T, int kHead = kLanes<T>>
inline Attention<T> lane_attention(int64_t head_dim, bool forward) {
  if (head_dim == kHead) {
    return forward ? lane_attention_forward<T, kHead> : lane_attention_backward<T, kHead>;
  }
  if constexpr (kHead > 1) return lane_attention<T, kHead / 2>(head_dim, forward);
  return nullptr;  // layouts with heads in lanes have no other head sizes
}

}  // namespace limpid::LIMPID_ISA
