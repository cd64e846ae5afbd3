#include "train/microgpt/fast_layout.h"

#include <algorithm>
#include <utility>

#include "base/divide_up.h"

namespace limpid::microgpt {
namespace {

int64_t round_up(int64_t n, int64_t lanes) { return divide_up(n, lanes) * lanes; }

constexpr double kMaskedLogit = -1e30;
// Attention with heads in lanes stores a vector for every pair of positions. For more positions
// than this, that would waste memory.
constexpr int64_t kMostPositions = 64;

}  // namespace

template <typename T>
FastLayout<T>::FastLayout(const Shape& shape, int64_t max_documents, int64_t lanes)
    : layers_(static_cast<size_t>(shape.n_layer)) {
  model_.shape = shape;
  model_.width = round_up(shape.n_embd, lanes);
  model_.hidden_width = round_up(4 * shape.n_embd, lanes);
  model_.vocab_width = round_up(shape.vocab_size, lanes);
  model_.positions = round_up(shape.block_size, lanes);
  model_.heads_in_lanes = lanes % shape.head_dim() == 0 && shape.block_size <= kMostPositions;
  model_.layers = layers_.data();
  place_matrices(lanes);
  constexpr auto kPerLine = static_cast<int64_t>(AlignedBuffer::kAlignment / sizeof(T));
  int64_t total = 0;
  std::vector<Array> all = arrays(max_documents);
  for (Array& array : all) {
    array.n = round_up(array.n, kPerLine);  // whole cache lines
    total += array.n;
  }
  buffer_ = AlignedBuffer(static_cast<uint64_t>(total) * sizeof(T));
  T* next = buffer_.as<T>().data();
  for (const Array& array : all) *array.numbers = std::exchange(next, next + array.n);
  std::fill(model_.logit_mask + shape.vocab_size, model_.logit_mask + model_.vocab_width,
            static_cast<T>(kMaskedLogit));
}

// Also pads the rows of a matrix that is going to be transposed. In a panel of attn_qkv the rows of
// wk follow those of wq, `width` rows further, so that q, k and v come from one product.
template <typename T>
void FastLayout<T>::place_matrices(int64_t lanes) {
  const auto place = [&](int64_t rows, int64_t cols, int64_t panel_rows) {
    const PaddedMatrix padded{model_.n_params, rows, cols, round_up(cols, lanes), panel_rows};
    model_.n_params += padded.panel_rows * padded.width;
    return padded;
  };
  const auto place_padded = [&](int64_t rows, int64_t cols) {
    return place(rows, cols, round_up(rows, lanes));
  };
  const Shape& shape = model_.shape;
  const int64_t n = shape.n_embd;
  model_.wte = place(shape.vocab_size, n, shape.vocab_size);
  model_.wpe = place(shape.block_size, n, shape.block_size);
  model_.lm_head = place_padded(shape.vocab_size, n);
  matrices_ = {model_.wte, model_.wpe, model_.lm_head};
  for (FastLayer<T>& layer : layers_) {
    layer.attn_qkv = place_padded(3 * model_.width, n);
    layer.attn_wo = place_padded(n, n);
    layer.mlp_fc1 = place_padded(4 * n, n);
    layer.mlp_fc2 = place_padded(n, 4 * n);
    PaddedMatrix part = layer.attn_qkv;
    part.rows = n;
    for (int i = 0; i < 3; ++i, part.offset += model_.width * lanes) matrices_.push_back(part);
    matrices_.insert(matrices_.end(), {layer.attn_wo, layer.mlp_fc1, layer.mlp_fc2});
  }
}

template <typename T>
std::vector<typename FastLayout<T>::Array> FastLayout<T>::arrays(int64_t max_documents) {
  std::vector<Array> all;
  const auto add = [&](int64_t n, std::initializer_list<T**> several) {
    for (T** numbers : several) all.push_back({numbers, n});
  };
  const int64_t width = model_.width;
  const int64_t hidden = model_.hidden_width;
  const int64_t positions = model_.positions;
  const int64_t probabilities =
      max_documents * (model_.heads_in_lanes ? positions * (positions + 1) / 2 * width
                                             : model_.shape.n_head * positions * positions);
  // A document's rows are transposed in whole vectors, so a few rows after the last one are read.
  const int64_t rows = max_documents * model_.shape.block_size + positions;
  add(model_.n_params,
      {&model_.weights, &model_.gradients, &model_.first_moment, &model_.second_moment});
  add(width * model_.vocab_width, {&model_.turned_lm_head});
  for (FastLayer<T>& layer : layers_) {
    add(width * 3 * width, {&layer.turned_qkv});
    add(width * width, {&layer.turned_wo});
    add(width * hidden, {&layer.turned_fc1, &layer.turned_fc2});
    LayerActivations<T>& saved = layer.saved;
    add(rows * width, {&saved.x, &saved.attention_norm, &saved.attended, &saved.middle,
                       &saved.mlp_norm, &saved.d_middle, &saved.d_out});
    add(rows * 3 * width, {&saved.qkv, &saved.d_qkv});
    add(rows * hidden, {&saved.hidden, &saved.d_hidden});
    add(rows, {&saved.attention_scale, &saved.mlp_scale});
    add(probabilities, {&saved.probabilities});
  }
  add(rows * width,
      {&model_.embedded, &model_.last, &model_.d_first, &model_.d_norm, &model_.d_attended});
  add(rows, {&model_.embedding_scale});
  add(rows * model_.vocab_width, {&model_.logits});
  add(model_.vocab_width, {&model_.logit_mask});
  add(width * positions, {&model_.attention.columns, &model_.attention.masked});
  add(positions * positions, {&model_.attention.scores});
  return all;
}

template class FastLayout<float>;
template class FastLayout<double>;

}  // namespace limpid::microgpt
