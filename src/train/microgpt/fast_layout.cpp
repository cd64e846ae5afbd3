#include "train/microgpt/fast_layout.h"

#include <algorithm>

namespace limpid::microgpt {
namespace {

int64_t round_up(int64_t n, int64_t lanes) { return (n + lanes - 1) / lanes * lanes; }

constexpr double kMaskedLogit = -1e30;

}  // namespace

template <typename T>
T* FastLayout<T>::Cursor::take(int64_t n) {
  constexpr auto kPerLine = static_cast<int64_t>(AlignedBuffer::kAlignment / sizeof(T));
  T* taken = memory == nullptr ? nullptr : memory + used;
  used += round_up(n, kPerLine);
  return taken;
}

template <typename T>
FastLayout<T>::FastLayout(const Shape& shape, int64_t max_documents, int64_t lanes)
    : layers_(static_cast<size_t>(shape.n_layer)) {
  model_.n_embd = shape.n_embd;
  model_.n_head = shape.n_head;
  model_.head_dim = shape.head_dim();
  model_.vocab_size = shape.vocab_size;
  model_.n_layers = shape.n_layer;
  model_.width = round_up(shape.n_embd, lanes);
  model_.hidden_width = round_up(4 * shape.n_embd, lanes);
  model_.vocab_width = round_up(shape.vocab_size, lanes);
  model_.positions = round_up(shape.block_size, lanes);
  model_.layers = layers_.data();
  place_matrices(shape, lanes);
  Cursor count{nullptr, 0};
  place_numbers(count, shape, max_documents);
  buffer_ = AlignedBuffer(static_cast<uint64_t>(count.used) * sizeof(T));
  Cursor cursor{buffer_.as<T>().data(), 0};
  place_numbers(cursor, shape, max_documents);
  std::fill(model_.logit_mask + shape.vocab_size, model_.logit_mask + model_.vocab_width,
            static_cast<T>(kMaskedLogit));
}

// Rows are padded too where the matrix will be turned over.
template <typename T>
void FastLayout<T>::place_matrices(const Shape& shape, int64_t lanes) {
  const auto place = [&](const Matrix& matrix, bool pad_rows) {
    const PaddedMatrix padded{model_.n_params, matrix.rows, matrix.cols,
                              round_up(matrix.cols, lanes)};
    model_.n_params += (pad_rows ? round_up(matrix.rows, lanes) : matrix.rows) * padded.stride;
    matrices_.push_back(padded);
    return padded;
  };
  const Matrices matrices(shape);
  model_.wte = place(matrices.wte, false);
  model_.wpe = place(matrices.wpe, false);
  model_.lm_head = place(matrices.lm_head, true);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerMatrices& layer = matrices.layers[i];
    layers_[i].attn_wq = place(layer.attn_wq, true);
    layers_[i].attn_wk = place(layer.attn_wk, true);
    layers_[i].attn_wv = place(layer.attn_wv, true);
    layers_[i].attn_wo = place(layer.attn_wo, true);
    layers_[i].mlp_fc1 = place(layer.mlp_fc1, true);
    layers_[i].mlp_fc2 = place(layer.mlp_fc2, true);
  }
}

template <typename T>
void FastLayout<T>::place_numbers(Cursor& cursor, const Shape& shape, int64_t max_documents) {
  const int64_t width = model_.width;
  const int64_t hidden = model_.hidden_width;
  const int64_t positions = model_.positions;
  // A document's rows are turned over in whole vectors, so some behind the last are read.
  const int64_t rows = max_documents * shape.block_size + positions;
  for (T** numbers :
       {&model_.weights, &model_.gradients, &model_.first_moment, &model_.second_moment}) {
    *numbers = cursor.take(model_.n_params);
  }
  model_.turned_lm_head = cursor.take(width * model_.vocab_width);
  for (FastLayer<T>& layer : layers_) {
    for (T** turned : {&layer.turned_wq, &layer.turned_wk, &layer.turned_wv, &layer.turned_wo}) {
      *turned = cursor.take(width * width);
    }
    layer.turned_fc1 = cursor.take(width * hidden);
    layer.turned_fc2 = cursor.take(hidden * width);
    LayerActivations<T>& saved = layer.saved;
    for (T** numbers : {&saved.x, &saved.attention_norm, &saved.q, &saved.k, &saved.v,
                        &saved.attended, &saved.middle, &saved.mlp_norm}) {
      *numbers = cursor.take(rows * width);
    }
    saved.attention_scale = cursor.take(rows);
    saved.mlp_scale = cursor.take(rows);
    saved.hidden = cursor.take(rows * hidden);
    saved.probabilities = cursor.take(max_documents * shape.n_head * positions * positions);
  }
  for (T** numbers : {&model_.embedded, &model_.last, &model_.dx, &model_.dy, &model_.dz}) {
    *numbers = cursor.take(rows * width);
  }
  model_.embedding_scale = cursor.take(rows);
  model_.logits = cursor.take(rows * model_.vocab_width);
  model_.logit_mask = cursor.take(model_.vocab_width);
  model_.dhidden = cursor.take(rows * hidden);
  AttentionScratch<T>& scratch = model_.attention;
  for (T** numbers : {&scratch.q_columns, &scratch.attended_columns, &scratch.dq_columns,
                      &scratch.dk_columns, &scratch.dv_columns}) {
    *numbers = cursor.take(width * positions);
  }
  scratch.scores = cursor.take(positions * positions);
  scratch.turned = cursor.take(positions * positions);
}

template class FastLayout<float>;
template class FastLayout<double>;

}  // namespace limpid::microgpt
