// The numbers of the fast engine, laid out for SIMD: what the engine allocates and the kernels work
// on. Rows are padded with zeros to whole vectors and start on their boundaries.
#pragma once

#include <cstdint>

#include "train/microgpt/engine.h"

namespace limpid::microgpt {

// [rows, cols] as the model has it; a row takes `stride` elements.
struct PaddedMatrix {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
};

// What the forward pass of a layer leaves for the backward pass. Rows are tokens, all documents of
// a batch one behind the other. "Columns" matrices are turned over: a row is a feature of one
// document, its elements that document's positions.
template <typename T>
struct LayerActivations {
  T* x;                // [rows, width] what goes in
  T* attention_norm;   // [rows, width] x, normed
  T* attention_scale;  // [rows] by what
  T* q;                // [rows, width]
  T* k;
  T* v;
  T* probabilities;  // [document, head, key position, position]
  T* attended;       // [rows, width]
  T* middle;         // [rows, width] x + attention
  T* mlp_norm;       // [rows, width]
  T* mlp_scale;      // [rows]
  T* hidden;         // [rows, hidden_width] behind the ReLU
};

template <typename T>
struct FastLayer {
  PaddedMatrix attn_wq, attn_wk, attn_wv, attn_wo, mlp_fc1, mlp_fc2;
  // The same turned over, [cols, rows], where the forward pass reads them.
  T *turned_wq, *turned_wk, *turned_wv, *turned_wo, *turned_fc1, *turned_fc2;
  LayerActivations<T> saved;
};

// Scratch of one document's attention.
template <typename T>
struct AttentionScratch {
  T* q_columns;         // [width, positions]
  T* attended_columns;  // [width, positions]; backward: its gradient
  T* dq_columns;        // [width, positions]
  T* dk_columns;
  T* dv_columns;
  T* scores;  // [positions, positions] of a head; backward: the gradient
  T* turned;  // [positions, positions]
};

struct FastDocument {
  const Token* tokens;
  int64_t n;      // positions that are learned: token i predicts token i + 1
  int64_t begin;  // its first row
};

template <typename T>
struct FastModel {
  // All widths are padded: to the lanes of the kernels.
  int64_t n_embd, n_head, head_dim, vocab_size;
  int64_t width;         // of n_embd
  int64_t hidden_width;  // of 4 n_embd
  int64_t vocab_width;   // of vocab_size
  int64_t positions;     // of block_size
  int64_t n_layers;
  int64_t n_params;  // padded

  T* weights;
  T* gradients;
  T* first_moment;
  T* second_moment;

  PaddedMatrix wte, wpe, lm_head;
  T* turned_lm_head;  // [width, vocab_width]
  FastLayer<T>* layers;

  T* embedded;         // [rows, width] token + position
  T* embedding_scale;  // [rows]
  T* last;             // [rows, width] what the head reads
  T* logits;           // [rows, vocab_width]; backward: their gradient
  T* logit_mask;       // [vocab_width] 0, and hugely negative in the padding
  T* dx;               // [rows, width]
  T* dy;               // [rows, width]
  T* dz;               // [rows, width]
  T* dhidden;          // [rows, hidden_width]
  AttentionScratch<T> attention;

  const FastDocument* documents;
  int64_t n_documents;
  int64_t n_rows;  // of all documents
};

// What is compiled once per instruction set.
template <typename T>
struct FastKernels {
  int64_t lanes;  // of T in a vector
  // Fills the turned weights from the weights.
  void (*turn_weights)(const FastModel<T>& model);
  // Logits of every row.
  void (*forward)(const FastModel<T>& model);
  // Sum over rows of `row_weights[row]` * cross entropy; leaves gradients. Behind forward().
  double (*backward)(const FastModel<T>& model, const double* row_weights);
  // Adam on weights and moments; turns the weights.
  void (*update)(const FastModel<T>& model, const AdamStep& step);
};

// The best that this CPU has; LIMPID_ISA of the environment names a lesser one (scalar, avx2,
// avx512).
template <typename T>
const FastKernels<T>& fast_kernels();

}  // namespace limpid::microgpt
