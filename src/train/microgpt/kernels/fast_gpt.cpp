// The model of scalar_gpt.cpp for all positions at once, with its derivative written out.
#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/adam.h"
#include "train/microgpt/kernels/fast_attention.h"
#include "train/microgpt/kernels/matrix_product.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {
namespace {

using microgpt::AdamStep;
using microgpt::FastKernels;
using microgpt::FastLayer;
using microgpt::PaddedMatrix;
using microgpt::Token;

template <typename T>
void turn_matrix(const FastModel<T>& model, const PaddedMatrix& matrix, T* turned) {
  const int64_t n = kLanes<T>;
  const int64_t rows = (matrix.rows + n - 1) / n * n;
  turn<T>(model.weights + matrix.offset, matrix.stride, rows, matrix.stride, turned, rows);
}

template <typename T>
void turn_weights(const FastModel<T>& model) {
  turn_matrix(model, model.lm_head, model.turned_lm_head);
  for (int64_t i = 0; i < model.n_layers; ++i) {
    const FastLayer<T>& layer = model.layers[i];
    turn_matrix(model, layer.attn_wq, layer.turned_wq);
    turn_matrix(model, layer.attn_wk, layer.turned_wk);
    turn_matrix(model, layer.attn_wv, layer.turned_wv);
    turn_matrix(model, layer.attn_wo, layer.turned_wo);
    turn_matrix(model, layer.mlp_fc1, layer.turned_fc1);
    turn_matrix(model, layer.mlp_fc2, layer.turned_fc2);
  }
}

// y = x / sqrt(mean(x^2) + 1e-5), row by row; `scale` keeps the factor.
template <typename T>
void rms_norm(const FastModel<T>& model, const T* x, T* y, T* scale) {
  const int64_t width = model.width;
  for (int64_t row = 0; row < model.n_rows; ++row) {
    Vector<T> squares = {};
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      squares += at(x + i) * at(x + i);
    }
    const T mean = sum_of_lanes<T>(squares) / static_cast<T>(model.n_embd);
    const T root = sizeof(T) == 4
                       ? static_cast<T>(__builtin_sqrtf(static_cast<float>(mean) + 1e-5F))
                       : static_cast<T>(__builtin_sqrt(static_cast<double>(mean) + 1e-5));
    scale[row] = T{1} / root;
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      at(y + i) = at(x + i) * scale[row];
    }
  }
}

// dx += scale dy - x scale^3 mean(x dy).
template <typename T>
void add_rms_norm_backward(const FastModel<T>& model, const T* x, const T* scale, const T* dy,
                           T* dx) {
  const int64_t width = model.width;
  for (int64_t row = 0; row < model.n_rows; ++row) {
    Vector<T> products = {};
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      products += at(x + i) * at(dy + i);
    }
    const T s = scale[row];
    const T factor = sum_of_lanes<T>(products) / static_cast<T>(model.n_embd) * s * s * s;
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      at(dx + i) += at(dy + i) * s - at(x + i) * factor;
    }
  }
}

template <typename T>
void add_rows(const FastModel<T>& model, const T* a, T* y) {
  for (int64_t i = 0; i < model.n_rows * model.width; i += kLanes<T>) at(y + i) += at(a + i);
}

template <typename T>
void embed(const FastModel<T>& model) {
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    for (int64_t position = 0; position < document.n; ++position) {
      const T* token =
          model.weights + model.wte.offset + document.tokens[position] * model.wte.stride;
      const T* place = model.weights + model.wpe.offset + position * model.wpe.stride;
      T* x = model.embedded + (document.begin + position) * model.width;
      for (int64_t i = 0; i < model.width; i += kLanes<T>)
        at(x + i) = at(token + i) + at(place + i);
    }
  }
}

template <typename T>
void layer_forward(const FastModel<T>& model, const FastLayer<T>& layer, T* y) {
  const LayerActivations<T>& saved = layer.saved;
  const int64_t rows = model.n_rows;
  const int64_t width = model.width;
  const int64_t hidden = model.hidden_width;
  const auto linear = [&](const T* x, int64_t n_in, const T* turned, int64_t n_out, T* out) {
    product<T>(rows, n_out, n_in, {x, n_in, 1}, {turned, n_out}, out, n_out);
  };
  rms_norm(model, saved.x, saved.attention_norm, saved.attention_scale);
  linear(saved.attention_norm, width, layer.turned_wq, width, saved.q);
  linear(saved.attention_norm, width, layer.turned_wk, width, saved.k);
  linear(saved.attention_norm, width, layer.turned_wv, width, saved.v);
  for (int64_t d = 0; d < model.n_documents; ++d) {
    attention_forward(model, saved, model.documents[d], d);
  }
  linear(saved.attended, width, layer.turned_wo, width, saved.middle);
  add_rows(model, saved.x, saved.middle);

  rms_norm(model, saved.middle, saved.mlp_norm, saved.mlp_scale);
  linear(saved.mlp_norm, width, layer.turned_fc1, hidden, saved.hidden);
  for (int64_t i = 0; i < rows * hidden; i += kLanes<T>) {
    const Vector<T> h = at(saved.hidden + i);
    at(saved.hidden + i) = h > T{0} ? h : Vector<T>{};
  }
  linear(saved.hidden, hidden, layer.turned_fc2, width, y);
  add_rows(model, saved.middle, y);
}

template <typename T>
void forward(const FastModel<T>& model) {
  embed(model);
  T* x = model.n_layers > 0 ? model.layers[0].saved.x : model.last;
  rms_norm(model, model.embedded, x, model.embedding_scale);
  for (int64_t i = 0; i < model.n_layers; ++i) {
    T* y = i + 1 < model.n_layers ? model.layers[i + 1].saved.x : model.last;
    layer_forward(model, model.layers[i], y);
  }
  product<T>(model.n_rows, model.vocab_width, model.width, {model.last, model.width, 1},
             {model.turned_lm_head, model.vocab_width}, model.logits, model.vocab_width);
}

// Cross entropy of one row; turns its logits into `weight` times their gradient.
template <typename T>
double cross_entropy(const FastModel<T>& model, T* logits, Token target, T weight) {
  Vector<T> largest = at(logits);
  for (int64_t i = 0; i < model.vocab_width; i += kLanes<T>) {
    at(logits + i) += at(model.logit_mask + i);
    largest = largest > at(logits + i) ? largest : at(logits + i);
  }
  const T most = max_of_lanes<T>(largest);
  const T at_target = logits[target];
  Vector<T> powers = {};
  for (int64_t i = 0; i < model.vocab_width; i += kLanes<T>) {
    at(logits + i) = exp_of<T>(at(logits + i) - most);
    powers += at(logits + i);
  }
  const T total = sum_of_lanes<T>(powers);
  const T scale = weight / total;
  for (int64_t i = 0; i < model.vocab_width; i += kLanes<T>) at(logits + i) *= scale;
  logits[target] -= weight;
  return __builtin_log(static_cast<double>(total)) - static_cast<double>(at_target - most);
}

// d weights = d y^T x.
template <typename T>
void weight_gradient(const FastModel<T>& model, const PaddedMatrix& matrix, const T* dy,
                     int64_t dy_stride, const T* x) {
  product<T>(matrix.rows, matrix.stride, model.n_rows, {dy, 1, dy_stride}, {x, matrix.stride},
             model.gradients + matrix.offset, matrix.stride);
}

// dx = d y weights.
template <typename T>
void input_gradient(const FastModel<T>& model, const PaddedMatrix& matrix, const T* dy,
                    int64_t dy_stride, T* dx) {
  product<T>(model.n_rows, matrix.stride, matrix.rows, {dy, dy_stride, 1},
             {model.weights + matrix.offset, matrix.stride}, dx, matrix.stride);
}

template <typename T>
void mlp_backward(const FastModel<T>& model, const FastLayer<T>& layer) {
  const LayerActivations<T>& saved = layer.saved;
  input_gradient(model, layer.mlp_fc2, model.dx, model.width, model.dhidden);
  for (int64_t i = 0; i < model.n_rows * model.hidden_width; i += kLanes<T>) {
    const Vector<T> gradient = at(model.dhidden + i);
    at(model.dhidden + i) = at(saved.hidden + i) > T{0} ? gradient : Vector<T>{};
  }
  weight_gradient(model, layer.mlp_fc2, model.dx, model.width, saved.hidden);
  weight_gradient(model, layer.mlp_fc1, model.dhidden, model.hidden_width, saved.mlp_norm);
  input_gradient(model, layer.mlp_fc1, model.dhidden, model.hidden_width, model.dy);
  add_rms_norm_backward(model, saved.middle, saved.mlp_scale, model.dy, model.dx);
}

// Of q, k or v of one document, whose gradient lies in `columns`: that of the weights, and that of
// the input, added to dy unless `first_input`.
template <typename T>
void projection_backward(const FastModel<T>& model, const PaddedMatrix& matrix, const T* x,
                         const FastDocument& document, const T* columns, bool first_document,
                         bool first_input) {
  const int64_t positions = model.positions;
  const RightMatrix<T> inputs{x + document.begin * model.width, model.width};
  T* gradient = model.gradients + matrix.offset;
  const LeftMatrix<T> by_feature{columns, positions, 1};
  if (first_document) {
    product<T, false>(matrix.rows, matrix.stride, document.n, by_feature, inputs, gradient,
                      matrix.stride);
  } else {
    product<T, true>(matrix.rows, matrix.stride, document.n, by_feature, inputs, gradient,
                     matrix.stride);
  }
  const RightMatrix<T> weights{model.weights + matrix.offset, matrix.stride};
  const LeftMatrix<T> by_position{columns, 1, positions};
  T* dy = model.dy + document.begin * model.width;
  if (first_input) {
    product<T, false>(document.n, matrix.stride, matrix.rows, by_position, weights, dy,
                      model.width);
  } else {
    product<T, true>(document.n, matrix.stride, matrix.rows, by_position, weights, dy, model.width);
  }
}

template <typename T>
void attention_block_backward(const FastModel<T>& model, const FastLayer<T>& layer) {
  const LayerActivations<T>& saved = layer.saved;
  weight_gradient(model, layer.attn_wo, model.dx, model.width, saved.attended);
  input_gradient(model, layer.attn_wo, model.dx, model.width, model.dz);
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    attention_backward(model, saved, document, d, model.dz);
    const T* x = saved.attention_norm;
    projection_backward(model, layer.attn_wq, x, document, model.attention.dq_columns, d == 0,
                        true);
    projection_backward(model, layer.attn_wk, x, document, model.attention.dk_columns, d == 0,
                        false);
    projection_backward(model, layer.attn_wv, x, document, model.attention.dv_columns, d == 0,
                        false);
  }
  add_rms_norm_backward(model, saved.x, saved.attention_scale, model.dy, model.dx);
}

template <typename T>
void embedding_backward(const FastModel<T>& model) {
  const int64_t width = model.width;
  for (int64_t i = 0; i < model.n_rows * width; i += kLanes<T>) at(model.dy + i) = Vector<T>{};
  add_rms_norm_backward(model, model.embedded, model.embedding_scale, model.dx, model.dy);
  T* tokens = model.gradients + model.wte.offset;
  T* places = model.gradients + model.wpe.offset;
  for (int64_t i = 0; i < model.wte.rows * width; i += kLanes<T>) at(tokens + i) = Vector<T>{};
  for (int64_t i = 0; i < model.wpe.rows * width; i += kLanes<T>) at(places + i) = Vector<T>{};
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    for (int64_t position = 0; position < document.n; ++position) {
      const T* dy = model.dy + (document.begin + position) * width;
      T* token = tokens + document.tokens[position] * width;
      T* place = places + position * width;
      for (int64_t i = 0; i < width; i += kLanes<T>) {
        at(token + i) += at(dy + i);
        at(place + i) += at(dy + i);
      }
    }
  }
}

template <typename T>
double backward(const FastModel<T>& model, const double* row_weights) {
  double loss = 0;
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    for (int64_t position = 0; position < document.n; ++position) {
      const int64_t row = document.begin + position;
      loss += row_weights[row] * cross_entropy(model, model.logits + row * model.vocab_width,
                                               document.tokens[position + 1],
                                               static_cast<T>(row_weights[row]));
    }
  }
  weight_gradient(model, model.lm_head, model.logits, model.vocab_width, model.last);
  input_gradient(model, model.lm_head, model.logits, model.vocab_width, model.dx);
  for (int64_t i = model.n_layers; i-- > 0;) {
    mlp_backward(model, model.layers[i]);
    attention_block_backward(model, model.layers[i]);
  }
  embedding_backward(model);
  return loss;
}

template <typename T>
void update(const FastModel<T>& model, const AdamStep& step) {
  adam<T>({model.weights, model.gradients, model.first_moment, model.second_moment},
          static_cast<size_t>(model.n_params), step);
  turn_weights(model);
}

}  // namespace

extern const FastKernels<float> kFastKernels32;
extern const FastKernels<double> kFastKernels64;
const FastKernels<float> kFastKernels32{kLanes<float>, turn_weights<float>, forward<float>,
                                        backward<float>, update<float>};
const FastKernels<double> kFastKernels64{kLanes<double>, turn_weights<double>, forward<double>,
                                         backward<double>, update<double>};

}  // namespace limpid::LIMPID_ISA
