#include "train/microgpt/fast_layout.h"

#include <algorithm>

namespace limpid::microgpt {
namespace {

int64_t round_up(int64_t n, int64_t lanes) { return (n + lanes - 1) / lanes * lanes; }

constexpr double kMaskedLogit = -1e30;
// Attention with heads in lanes stores a vector for every pair of positions. For more positions
// than this, that would waste memory.
constexpr int64_t kMostPositions = 64;

}  // namespace

// Takes n numbers from the buffer, rounded up to whole cache lines.
template <typename T>
T* FastLayout<T>::Cursor::take(int64_t n) {
  constexpr auto kPerLine = static_cast<int64_t>(AlignedBuffer::kAlignment / sizeof(T));
  T* taken = memory == nullptr ? nullptr : memory + used;
  used += round_up(n, kPerLine);
  return taken;
}

// The same function places the numbers twice: first with a cursor without memory, which only adds
// up the size, then with the buffer. The two can therefore not disagree.
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
  model_.heads_in_lanes = lanes % shape.head_dim() == 0 && shape.block_size <= kMostPositions;
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

template <typename T>
int64_t FastLayout<T>::probabilities_per_document() const {
  const int64_t positions = model_.positions;
  return model_.heads_in_lanes ? positions * (positions + 1) / 2 * model_.width
                               : model_.n_head * positions * positions;
}

// Also pads the rows of a matrix that is going to be transposed. wq, wk and wv share panels of
// 3 width rows, so that q, k and v come from one product: in a panel the rows of wk follow those of
// wq, `width` rows further.
template <typename T>
void FastLayout<T>::place_matrices(const Shape& shape, int64_t lanes) {
  const auto place = [&](const Matrix& matrix, int64_t panel_rows) {
    const PaddedMatrix padded{model_.n_params, matrix.rows, matrix.cols,
                              round_up(matrix.cols, lanes), panel_rows};
    model_.n_params += padded.panel_rows * padded.width;
    matrices_.push_back(padded);
    return padded;
  };
  const auto place_padded = [&](const Matrix& matrix) {
    return place(matrix, round_up(matrix.rows, lanes));
  };
  const Matrices matrices(shape);
  model_.wte = place(matrices.wte, matrices.wte.rows);
  model_.wpe = place(matrices.wpe, matrices.wpe.rows);
  model_.lm_head = place_padded(matrices.lm_head);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerMatrices& layer = matrices.layers[i];
    layers_[i].attn_wq = place(layer.attn_wq, 3 * model_.width);
    layers_[i].attn_wk = layers_[i].attn_wq;
    layers_[i].attn_wk.offset += model_.width * lanes;
    layers_[i].attn_wv = layers_[i].attn_wk;
    layers_[i].attn_wv.offset += model_.width * lanes;
    matrices_.push_back(layers_[i].attn_wk);
    matrices_.push_back(layers_[i].attn_wv);
    layers_[i].attn_wo = place_padded(layer.attn_wo);
    layers_[i].mlp_fc1 = place_padded(layer.mlp_fc1);
    layers_[i].mlp_fc2 = place_padded(layer.mlp_fc2);
  }
}

template <typename T>
void FastLayout<T>::place_numbers(Cursor& cursor, const Shape& shape, int64_t max_documents) {
  const int64_t width = model_.width;
  const int64_t hidden = model_.hidden_width;
  const int64_t positions = model_.positions;
  // A document's rows are transposed in whole vectors, so a few rows after the last one are read.
  const int64_t rows = max_documents * shape.block_size + positions;
  for (T** numbers :
       {&model_.weights, &model_.gradients, &model_.first_moment, &model_.second_moment}) {
    *numbers = cursor.take(model_.n_params);
  }
  model_.turned_lm_head = cursor.take(width * model_.vocab_width);
  for (FastLayer<T>& layer : layers_) {
    layer.turned_qkv = cursor.take(width * 3 * width);
    layer.turned_wo = cursor.take(width * width);
    layer.turned_fc1 = cursor.take(width * hidden);
    layer.turned_fc2 = cursor.take(hidden * width);
    LayerActivations<T>& saved = layer.saved;
    for (T** numbers : {&saved.x, &saved.attention_norm, &saved.attended, &saved.middle,
                        &saved.mlp_norm, &saved.d_middle, &saved.d_out}) {
      *numbers = cursor.take(rows * width);
    }
    for (T** numbers : {&saved.qkv, &saved.d_qkv}) *numbers = cursor.take(rows * 3 * width);
    for (T** numbers : {&saved.hidden, &saved.d_hidden}) *numbers = cursor.take(rows * hidden);
    saved.attention_scale = cursor.take(rows);
    saved.mlp_scale = cursor.take(rows);
    saved.probabilities = cursor.take(max_documents * probabilities_per_document());
  }
  for (T** numbers :
       {&model_.embedded, &model_.last, &model_.d_first, &model_.d_norm, &model_.d_attended}) {
    *numbers = cursor.take(rows * width);
  }
  model_.embedding_scale = cursor.take(rows);
  model_.logits = cursor.take(rows * model_.vocab_width);
  model_.logit_mask = cursor.take(model_.vocab_width);
  AttentionScratch<T>& scratch = model_.attention;
  scratch.columns = cursor.take(width * positions);
  scratch.scores = cursor.take(positions * positions);
  scratch.masked = cursor.take(positions * width);
}

template class FastLayout<float>;
template class FastLayout<double>;

}  // namespace limpid::microgpt
