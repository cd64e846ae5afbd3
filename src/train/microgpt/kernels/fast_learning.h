// Computes gradients from the results of the forward and backward passes, and updates the weights.
#pragma once

#include "train/microgpt/fast_model.h"
#include "train/microgpt/kernels/adam.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

using microgpt::AdamStep;
using microgpt::FastLayer;
using microgpt::FastModel;
using microgpt::LayerActivations;
using microgpt::PaddedMatrix;

// A matrix [rows, cols] of the model, its input `in`, and the derivative `d_out` of its output. Its
// gradient is d_out^T in. `turned` is the transposed copy that the forward pass reads.
template <typename T>
struct Projection {
  const PaddedMatrix& matrix;
  const T* in;  // [n_rows, matrix.width]
  const T* d_out;
  int64_t d_out_stride;
  T* turned;  // in panels of matrix.width rows

  int64_t weight(int64_t row, int64_t col) const { return matrix.at(row, col, kLanes<T>); }
  // Returns the address of the transposed square of weights that begins at (row, col).
  T* turned_square(int64_t row, int64_t col) const {
    return turned + row * matrix.width + col * kLanes<T>;
  }
};

// Calls `visit` for every matrix of the model except the embeddings, whose gradients are sums over
// the rows that use them.
template <typename T, typename Visit>
inline void for_each_projection(const FastModel<T>& model, const Visit& visit) {
  const int64_t width = model.width;
  const int64_t hidden = model.hidden_width;
  visit({model.lm_head, model.last, model.logits, model.vocab_width, model.turned_lm_head});
  for (int64_t i = 0; i < model.shape.n_layer; ++i) {
    const FastLayer<T>& layer = model.layers[i];
    const LayerActivations<T>& saved = layer.saved;
    visit({layer.attn_qkv, saved.attention_norm, saved.d_qkv, 3 * width, layer.turned_qkv});
    visit({layer.attn_wo, saved.attended, saved.d_middle, width, layer.turned_wo});
    visit({layer.mlp_fc1, saved.mlp_norm, saved.d_hidden, hidden, layer.turned_fc1});
    visit({layer.mlp_fc2, saved.hidden, saved.d_out, width, layer.turned_fc2});
  }
}

// Calls `visit` for each square of kLanes rows and one panel, the unit in which weights are
// transposed.
template <typename T, typename Visit>
inline void for_each_square(const PaddedMatrix& matrix, const Visit& visit) {
  for (int64_t row = 0; row < matrix.rows; row += kLanes<T>) {
    for (int64_t col = 0; col < matrix.width; col += kLanes<T>) visit(row, col);
  }
}

// Transposes all weights, for the first forward pass; later `learn` transposes what it changes.
template <typename T>
void turn_weights(const FastModel<T>& model) {
  for_each_projection<T>(model, [&](const Projection<T>& of) {
    for_each_square<T>(of.matrix, [&](int64_t row, int64_t col) {
      turn_square<T>(model.weights + of.weight(row, col), kLanes<T>, of.turned_square(row, col),
                     kLanes<T>);
    });
  });
}

// The gradient of kRows rows and one vector of columns.
template <typename T, int kRows>
inline void gradient_rows(const Projection<T>& of, int64_t row, int64_t col, int64_t n,
                          Vector<T>* sums) {
  const T* in = of.in + col;
  const T* d_out = of.d_out + row;
  const int64_t in_stride = of.matrix.width;
  const int64_t d_out_stride = of.d_out_stride;
  for (int64_t i = 0; i < n; ++i) {
    const Vector<T> x = at(in + i * in_stride);
    const T* d = d_out + i * d_out_stride;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] += x * d[r];
  }
}

// The number of rows of the gradient that fit in registers beside x and the factors.
template <typename T>
inline constexpr int kRowsAtOnce = kLanes<T> < 8 ? kLanes<T> : 8;

// Stores the gradients. Only Engine::gradients needs them stored; see `learn`.
template <typename T>
void gather_gradients(const FastModel<T>& model) {
  constexpr int kRows = kRowsAtOnce<T>;
  for_each_projection<T>(model, [&](const Projection<T>& of) {
    for_each_square<T>(of.matrix, [&](int64_t row, int64_t col) {
      for (int r = 0; r < kLanes<T>; r += kRows) {
        Vector<T> sums[kRows] = {};
        gradient_rows<T, kRows>(of, row + r, col, model.n_rows, sums);
        T* to = model.gradients + of.weight(row + r, col);
        for (int i = 0; i < kRows; ++i) at(to + i * kLanes<T>) = sums[i];
      }
    });
  });
}

// New weights that are not transposed yet. Adam's divisions have a long latency, so a square is
// transposed while the divisions of the next square run.
template <typename T>
struct SquareToTurn {
  const T* weights;
  T* turned;

  void turn_it() const {
    if (weights != nullptr) turn_square<T>(weights, kLanes<T>, turned, kLanes<T>);
  }
};

// Sums the gradient in registers and applies Adam at once. Padding stays 0. Example: with 16 lanes,
// a square is 16 x 16 weights. Each of the two groups of 8 rows keeps 8 vectors of sums in
// registers, adds the product of input and derivative of every row of the batch, and then updates
// weights and moments of these rows. The gradient is never written to memory.
template <typename T>
void learn(const FastModel<T>& model, const Projection<T>& projection,
           const AdamFactors<T>& factors, SquareToTurn<T>& last) {
  constexpr int kRows = kRowsAtOnce<T>;
  // Copies, because the stores below could alias the originals.
  const AdamFactors<T> step = factors;
  const PaddedMatrix matrix = projection.matrix;
  const Projection<T> of{matrix, projection.in, projection.d_out, projection.d_out_stride,
                         projection.turned};
  const int64_t n = model.n_rows;
  const AdamState<T> all{model.weights, model.first_moment, model.second_moment};
  SquareToTurn<T> before = last;
  for_each_square<T>(matrix, [&](int64_t row, int64_t col) {
    const AdamState<T> state = all.from(of.weight(row, col));
#pragma GCC unroll 8
    for (int r = 0; r < kLanes<T>; r += kRows) {
      Vector<T> sums[kRows] = {};
      gradient_rows<T, kRows>(of, row + r, col, n, sums);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) adam(state, (r + i) * kLanes<T>, sums[i], step);
    }
    before.turn_it();
    before = {state.weights, of.turned_square(row, col)};
  });
  last = before;
}

// While this object exists, results below the smallest normal number are rounded to 0. The moments
// of a parameter without gradient decay to such numbers and stay there, and each operation on one
// costs some CPUs hundreds of cycles.
class FlushTinyToZero {
 public:
#if defined(__x86_64__)
  FlushTinyToZero() : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(before_ | kFlushResults | kFlushOperands);
  }
  ~FlushTinyToZero() { __builtin_ia32_ldmxcsr(before_); }

 private:
  static constexpr unsigned kFlushResults = 1U << 15;
  static constexpr unsigned kFlushOperands = 1U << 6;
  unsigned before_;
#else
  FlushTinyToZero() {}
  ~FlushTinyToZero() {}
#endif
  FlushTinyToZero(const FlushTinyToZero&) = delete;
  FlushTinyToZero& operator=(const FlushTinyToZero&) = delete;
};

template <typename T>
void update(const FastModel<T>& model, const AdamStep& step) {
  const FlushTinyToZero flush;
  const AdamFactors<T> factors(step);
  const AdamState<T> state{model.weights, model.first_moment, model.second_moment};
  for (const PaddedMatrix* matrix : {&model.wte, &model.wpe}) {
    for (int64_t i = 0; i < matrix->rows * matrix->width; i += kLanes<T>) {
      const int64_t at_weight = matrix->offset + i;
      adam(state, at_weight, at(model.gradients + at_weight), factors);
    }
  }
  SquareToTurn<T> last{};
  for_each_projection<T>(
      model, [&](const Projection<T>& projection) { learn(model, projection, factors, last); });
  last.turn_it();
}

}  // namespace limpid::LIMPID_ISA
