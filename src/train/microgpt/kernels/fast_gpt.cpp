// The model of scalar_gpt.cpp, computed for all positions at once, with an explicit derivative.
#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/fast_attention.h"
#include "train/microgpt/kernels/fast_learning.h"
#include "train/microgpt/kernels/matrix_product.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {
namespace {

using microgpt::FastKernels;
using microgpt::Token;

// The sum of x[i] y[i].
template <typename T>
T dot(const T* x, const T* y, int64_t n) {
  Vector<T> products = {};
  for (int64_t i = 0; i < n; i += kLanes<T>) products += at(x + i) * at(y + i);
  return sum_of_lanes<T>(products);
}

// y = x / sqrt(mean(x^2) + 1e-5) for each row. The factor is stored in `scale`. The padding of a
// row is 0 and adds nothing to the squares; the mean divides by n_embd, not by the width.
template <typename T>
void rms_norm(const FastModel<T>& model, const T* x, T* y, T* scale) {
  const int64_t width = model.width;
  for (int64_t row = 0; row < model.n_rows; ++row) {
    const T* own = x + row * width;
    const T mean = dot(own, own, width) / static_cast<T>(model.shape.n_embd);
    scale[row] = T{1} / root(mean + static_cast<T>(1e-5));
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      at(y + i) = at(x + i) * scale[row];
    }
  }
}

// dx = base + scale dy - x scale^3 mean(x dy). `base` may be nullptr.
template <typename T>
void rms_norm_backward(const FastModel<T>& model, const T* x, const T* scale, const T* dy,
                       const T* base, T* dx) {
  const int64_t width = model.width;
  for (int64_t row = 0; row < model.n_rows; ++row) {
    const T s = scale[row];
    const T mean =
        dot(x + row * width, dy + row * width, width) / static_cast<T>(model.shape.n_embd);
    const T factor = mean * s * s * s;
    for (int64_t i = row * width; i < (row + 1) * width; i += kLanes<T>) {
      const Vector<T> change = at(dy + i) * s - at(x + i) * factor;
      at(dx + i) = base == nullptr ? change : at(base + i) + change;
    }
  }
}

// x = token embedding + position embedding, for all rows.
template <typename T>
void embed(const FastModel<T>& model) {
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    for (int64_t position = 0; position < document.n; ++position) {
      T* x = model.embedded + (document.begin + position) * model.width;
      for (int64_t i = 0; i < model.width; i += kLanes<T>) {
        at(x + i) = at(model.weights + model.wte.at(document.tokens[position], i, kLanes<T>)) +
                    at(model.weights + model.wpe.at(position, i, kLanes<T>));
      }
    }
  }
}

// Selects the kernel for the head size and runs it on each document. Attention is the only step
// that must not mix documents; all other steps treat the rows of a batch as one matrix.
template <typename T>
void attend(const FastModel<T>& model, const LayerActivations<T>& saved, bool forward) {
  const Attention<T> whole_heads = lane_attention<T>(model.shape.head_dim(), forward);
  const Attention<T> attention = model.heads_in_lanes ? whole_heads
                                 : forward            ? attention_forward<T>
                                                      : attention_backward<T>;
  for (int64_t d = 0; d < model.n_documents; ++d) attention(model, saved, model.documents[d], d);
}

// One layer for all rows: x -> middle = x + attention(norm(x)) -> y = middle +
// fc2(relu(fc1(norm(middle)))). All intermediate results are kept in layer.saved for the backward
// pass. product<T, true> adds the residual while it writes its result.
template <typename T>
void layer_forward(const FastModel<T>& model, const FastLayer<T>& layer, T* y) {
  const LayerActivations<T>& saved = layer.saved;
  const int64_t rows = model.n_rows;
  const int64_t width = model.width;
  const int64_t hidden = model.hidden_width;
  rms_norm(model, saved.x, saved.attention_norm, saved.attention_scale);
  product<T>(rows, 3 * width, width, {saved.attention_norm, width, 1},
             in_panels(layer.turned_qkv, width), saved.qkv, 3 * width);
  attend(model, saved, true);
  product<T, true>(rows, width, width, {saved.attended, width, 1},
                   in_panels(layer.turned_wo, width), saved.middle, width, saved.x);

  rms_norm(model, saved.middle, saved.mlp_norm, saved.mlp_scale);
  product<T>(rows, hidden, width, {saved.mlp_norm, width, 1}, in_panels(layer.turned_fc1, width),
             saved.hidden, hidden);
  for (int64_t i = 0; i < rows * hidden; i += kLanes<T>) {
    const Vector<T> h = at(saved.hidden + i);
    at(saved.hidden + i) = h > T{0} ? h : Vector<T>{};
  }
  product<T, true>(rows, width, hidden, {saved.hidden, hidden, 1},
                   in_panels(layer.turned_fc2, hidden), y, width, saved.middle);
}

template <typename T>
void forward(const FastModel<T>& model) {
  embed(model);
  T* x = model.shape.n_layer > 0 ? model.layers[0].saved.x : model.last;
  rms_norm(model, model.embedded, x, model.embedding_scale);
  for (int64_t i = 0; i < model.shape.n_layer; ++i) {
    T* y = i + 1 < model.shape.n_layer ? model.layers[i + 1].saved.x : model.last;
    layer_forward(model, model.layers[i], y);
  }
  product<T>(model.n_rows, model.vocab_width, model.width, {model.last, model.width, 1},
             in_panels(model.turned_lm_head, model.width), model.logits, model.vocab_width);
}

// The loss of a row of logits is log(total) - above.
struct RowLoss {
  double total;
  double above;
};

// Replaces logits by `weight` times the gradient of their cross entropy. For a row z with target t:
// p = softmax(z), loss = -log p[t] and d loss / d z = p - onehot(t).
template <typename T>
RowLoss cross_entropy(const FastModel<T>& model, T* logits, Token target, T weight) {
  Vector<T> largest = at(logits) + at(model.logit_mask);
  for (int64_t i = kLanes<T>; i < model.vocab_width; i += kLanes<T>) {
    const Vector<T> logit = at(logits + i) + at(model.logit_mask + i);
    largest = largest > logit ? largest : logit;
  }
  const T most = max_of_lanes<T>(largest);
  const T above = logits[target] - most;
  Vector<T> powers = {};
  for (int64_t i = 0; i < model.vocab_width; i += kLanes<T>) {
    const Vector<T> mask = at(model.logit_mask + i);
    const Vector<T> power = exp_of<T>(at(logits + i) + mask - most);
    at(logits + i) = mask < T{0} ? Vector<T>{} : power;
    powers += at(logits + i);
  }
  const T total = sum_of_lanes<T>(powers);
  const T scale = weight / total;
  for (int64_t i = 0; i < model.vocab_width; i += kLanes<T>) at(logits + i) *= scale;
  logits[target] -= weight;
  return {static_cast<double>(total), static_cast<double>(above)};
}

template <typename T>
double loss_backward(const FastModel<T>& model, const double* row_weights) {
  double loss = 0;
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    const double weight = row_weights[document.begin];  // the same for all rows of a document
    double product = 1;                                 // of totals, to compute fewer logarithms
    for (int64_t position = 0; position < document.n; ++position) {
      T* logits = model.logits + (document.begin + position) * model.vocab_width;
      const RowLoss row =
          cross_entropy(model, logits, document.tokens[position + 1], static_cast<T>(weight));
      loss -= weight * row.above;
      product *= row.total;
      if (product > 1e200) {
        loss += weight * __builtin_log(product);
        product = 1;
      }
    }
    loss += weight * __builtin_log(product);
  }
  return loss;
}

// dx = dy weights.
template <typename T>
void input_gradient(const FastModel<T>& model, const PaddedMatrix& matrix, int64_t n_out,
                    const T* dy, int64_t dy_stride, T* dx) {
  product<T>(model.n_rows, matrix.width, n_out, {dy, dy_stride, 1},
             in_panels(model.weights + matrix.offset, matrix.panel_rows), dx, matrix.width);
}

// Computes the gradient of a layer's input from saved.d_out.
template <typename T>
void layer_backward(const FastModel<T>& model, const FastLayer<T>& layer, T* dx) {
  const LayerActivations<T>& saved = layer.saved;
  const int64_t width = model.width;
  const int64_t hidden = model.hidden_width;
  input_gradient(model, layer.mlp_fc2, width, saved.d_out, width, saved.d_hidden);
  for (int64_t i = 0; i < model.n_rows * hidden; i += kLanes<T>) {
    const Vector<T> gradient = at(saved.d_hidden + i);
    at(saved.d_hidden + i) = at(saved.hidden + i) > T{0} ? gradient : Vector<T>{};
  }
  input_gradient(model, layer.mlp_fc1, hidden, saved.d_hidden, hidden, model.d_norm);
  rms_norm_backward(model, saved.middle, saved.mlp_scale, model.d_norm, saved.d_out,
                    saved.d_middle);

  input_gradient(model, layer.attn_wo, width, saved.d_middle, width, model.d_attended);
  attend(model, saved, false);
  input_gradient(model, layer.attn_qkv, 3 * width, saved.d_qkv, 3 * width, model.d_norm);
  rms_norm_backward(model, saved.x, saved.attention_scale, model.d_norm, saved.d_middle, dx);
}

template <typename T>
void embedding_backward(const FastModel<T>& model) {
  const int64_t width = model.width;
  rms_norm_backward<T>(model, model.embedded, model.embedding_scale, model.d_first, nullptr,
                       model.d_norm);
  for (const PaddedMatrix* matrix : {&model.wte, &model.wpe}) {
    set_zero(model.gradients + matrix->offset, matrix->rows * width);
  }
  for (int64_t d = 0; d < model.n_documents; ++d) {
    const FastDocument& document = model.documents[d];
    for (int64_t position = 0; position < document.n; ++position) {
      const T* dy = model.d_norm + (document.begin + position) * width;
      for (int64_t i = 0; i < width; i += kLanes<T>) {
        at(model.gradients + model.wte.at(document.tokens[position], i, kLanes<T>)) += at(dy + i);
        at(model.gradients + model.wpe.at(position, i, kLanes<T>)) += at(dy + i);
      }
    }
  }
}

template <typename T>
double backward(const FastModel<T>& model, const double* row_weights) {
  const double loss = loss_backward(model, row_weights);
  const auto before = [&](int64_t layer) {
    return layer > 0 ? model.layers[layer - 1].saved.d_out : model.d_first;
  };
  input_gradient(model, model.lm_head, model.lm_head.rows, model.logits, model.vocab_width,
                 before(model.shape.n_layer));
  for (int64_t i = model.shape.n_layer; i-- > 0;) layer_backward(model, model.layers[i], before(i));
  embedding_backward(model);
  return loss;
}

}  // namespace

extern const FastKernels<float> kFastKernels32;
extern const FastKernels<double> kFastKernels64;
const FastKernels<float> kFastKernels32{kLanes<float>,   turn_weights<float>,     forward<float>,
                                        backward<float>, gather_gradients<float>, update<float>};
const FastKernels<double> kFastKernels64{kLanes<double>,           turn_weights<double>,
                                         forward<double>,          backward<double>,
                                         gather_gradients<double>, update<double>};

}  // namespace limpid::LIMPID_ISA
