// The numbers of the fast engine, laid out for SIMD: what the engine allocates and the kernels work
// on. Rows are padded with zeros to whole vectors and start on their boundaries.
#pragma once

#include <cstdint>

#include "train/microgpt/engine.h"

namespace limpid::microgpt {

// [rows, cols] in panels: as many columns as a vector has lanes, row behind row. Columns are padded
// to whole panels.
struct PaddedMatrix {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t width = 0;       // of whole panels
  int64_t panel_rows = 0;  // from one panel to the next; wq, wk and wv share panels

  int64_t at(int64_t row, int64_t col, int64_t lanes) const {
    return offset + col / lanes * lanes * panel_rows + row * lanes + col % lanes;
  }
};

// What a layer leaves behind. Rows are tokens, all documents of a batch one behind the other. The
// backward pass leaves d loss / d (what each matrix gives); with what each matrix got, that is the
// gradient of the matrix, which is summed where it is used (update) and nowhere kept.
template <typename T>
struct LayerActivations {
  T* x;                // [rows, width] what goes in
  T* attention_norm;   // [rows, width] x, normed
  T* attention_scale;  // [rows] by what
  T* qkv;              // [rows, 3 width] q, k, v
  T* probabilities;    // per document; see the two attentions
  T* attended;         // [rows, width]
  T* middle;           // [rows, width] x + attention
  T* mlp_norm;         // [rows, width]
  T* mlp_scale;        // [rows]
  T* hidden;           // [rows, hidden_width] behind the ReLU

  T* d_qkv;     // [rows, 3 width]
  T* d_middle;  // [rows, width]
  T* d_hidden;  // [rows, hidden_width] before the ReLU
  T* d_out;     // [rows, width]
};

template <typename T>
struct FastLayer {
  PaddedMatrix attn_wq, attn_wk, attn_wv, attn_wo, mlp_fc1, mlp_fc2;
  // Turned over, [cols, rows] in panels, where the forward pass reads them; of wq, wk and wv as
  // one.
  T *turned_qkv, *turned_wo, *turned_fc1, *turned_fc2;
  LayerActivations<T> saved;
};

// Scratch of one document's attention.
template <typename T>
struct AttentionScratch {
  T* columns;  // [width, positions] q turned over; backward: the gradient of `attended`
  T* scores;   // [positions, positions] the gradient of a head's scores
  T* masked;   // [positions, width] rows with the features of one head
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
  bool heads_in_lanes;  // a vector holds whole heads: attention of kernels/lane_attention.h
  int64_t n_params;     // padded

  T* weights;
  T* gradients;
  T* first_moment;
  T* second_moment;

  PaddedMatrix wte, wpe, lm_head;
  T* turned_lm_head;  // [width, vocab_width] in panels
  FastLayer<T>* layers;

  T* embedded;         // [rows, width] token + position
  T* embedding_scale;  // [rows]
  T* last;             // [rows, width] what the head reads
  T* logits;           // [rows, vocab_width]; backward: their gradient
  T* logit_mask;       // [vocab_width] 0, and hugely negative in the padding
  T* d_first;          // [rows, width] of what goes into the first layer
  T* d_norm;           // [rows, width] scratch: of what a norm gives
  T* d_attended;       // [rows, width] scratch
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
  // Sum over rows of `row_weights[row]` * cross entropy; leaves what the gradients are made of.
  // Behind forward().
  double (*backward)(const FastModel<T>& model, const double* row_weights);
  // Fills `gradients` from that; the embeddings' are there already.
  void (*gather_gradients)(const FastModel<T>& model);
  // Adam on weights and moments; turns the weights.
  void (*update)(const FastModel<T>& model, const AdamStep& step);
};

// The best that this CPU has; LIMPID_ISA of the environment names a lesser one (scalar, avx2,
// avx512).
template <typename T>
const FastKernels<T>& fast_kernels();

}  // namespace limpid::microgpt
