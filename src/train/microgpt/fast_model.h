// The arrays of the fast engine, arranged for SIMD. The engine allocates them and the kernels
// compute with them. Rows are padded with zeros to whole vectors and are aligned to vectors.
#pragma once

#include <cstdint>

#include "train/microgpt/engine.h"

namespace limpid::microgpt {

// A matrix [rows, cols] in panels. A panel has as many columns as a vector has lanes, and stores
// its rows one after another, so that one load reads one row of a panel. Example with 4 lanes: a
// [2, 6] matrix has two panels of 2 x 4, the second padded with two columns of zeros.
struct PaddedMatrix {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t width = 0;       // number of columns in whole panels
  int64_t panel_rows = 0;  // distance between panels, in rows

  int64_t at(int64_t row, int64_t col, int64_t lanes) const {
    return offset + col / lanes * lanes * panel_rows + row * lanes + col % lanes;
  }
};

// The results of a layer's forward pass, which the backward pass needs. Each row is a token; the
// rows of all documents of a batch follow one another. The backward pass stores d loss / d (output)
// of each matrix. Together with the input of the matrix, this gives the gradient of the matrix,
// which is computed in registers where it is used (update) and not stored.
template <typename T>
struct LayerActivations {
  T* x;                // [rows, width] input
  T* attention_norm;   // [rows, width] x, normalized
  T* attention_scale;  // [rows] the factors of the normalization
  T* qkv;              // [rows, 3 width] q, k, v
  T* probabilities;    // per document; see the two attentions
  T* attended;         // [rows, width]
  T* middle;           // [rows, width] x + attention
  T* mlp_norm;         // [rows, width]
  T* mlp_scale;        // [rows]
  T* hidden;           // [rows, hidden_width] after the ReLU

  T* d_qkv;     // [rows, 3 width]
  T* d_middle;  // [rows, width]
  T* d_hidden;  // [rows, hidden_width] before the ReLU
  T* d_out;     // [rows, width]
};

template <typename T>
struct FastLayer {
  PaddedMatrix attn_qkv;  // wq, wk and wv, each padded to `width` rows: [3 width, n_embd]
  PaddedMatrix attn_wo, mlp_fc1, mlp_fc2;
  // Transposed weights [cols, rows] in panels, which the forward pass reads.
  T *turned_qkv, *turned_wo, *turned_fc1, *turned_fc2;
  LayerActivations<T> saved;
};

// Scratch memory for the attention of one document.
template <typename T>
struct AttentionScratch {
  T* columns;  // [width, positions] q transposed; backward: the gradient of `attended`
  T* scores;   // [positions, positions] the gradient of a head's scores
  T* masked;   // [positions, width] rows with only the features of one head
};

// A document of the current batch.
struct FastDocument {
  const Token* tokens;
  int64_t n;      // positions with a target: token i predicts token i + 1
  int64_t begin;  // its first row
};

template <typename T>
struct FastModel {
  Shape shape;
  // All widths are padded to the lanes of the kernels.
  int64_t width;         // n_embd, padded
  int64_t hidden_width;  // 4 n_embd, padded
  int64_t vocab_width;   // vocab_size, padded
  int64_t positions;     // block_size, padded
  bool heads_in_lanes;   // a vector holds whole heads: use kernels/lane_attention.h
  int64_t n_params;      // padded

  T* weights;
  T* gradients;
  T* first_moment;
  T* second_moment;

  PaddedMatrix wte, wpe, lm_head;
  T* turned_lm_head;  // [width, vocab_width] in panels
  FastLayer<T>* layers;

  T* embedded;         // [rows, width] token + position
  T* embedding_scale;  // [rows]
  T* last;             // [rows, width] input of the output matrix
  T* logits;           // [rows, vocab_width]; backward: their gradient
  T* logit_mask;       // [vocab_width] 0, and hugely negative in the padding
  T* d_first;          // [rows, width] gradient of the first layer's input
  T* d_norm;           // [rows, width] scratch: gradient of a normalization's output
  T* d_attended;       // [rows, width] scratch
  AttentionScratch<T> attention;

  const FastDocument* documents;
  int64_t n_documents;
  int64_t n_rows;  // of all documents
};

// The kernels, which are compiled once per instruction set.
template <typename T>
struct FastKernels {
  int64_t lanes;  // elements of T in a vector
  // Fills the transposed weights from the weights.
  void (*turn_weights)(const FastModel<T>& model);
  // Computes the logits of every row.
  void (*forward)(const FastModel<T>& model);
  // Returns the sum over rows of `row_weights[row]` * cross entropy, and stores the derivatives of
  // which the gradients consist. Call it after forward().
  double (*backward)(const FastModel<T>& model, const double* row_weights);
  // Fills `gradients` from these derivatives. The gradients of the embeddings are already there.
  void (*gather_gradients)(const FastModel<T>& model);
  // Applies Adam to weights and moments, and transposes the weights.
  void (*update)(const FastModel<T>& model, const AdamStep& step);
};

// Returns the best kernels for this CPU. The environment variable LIMPID_ISA selects a lesser
// instruction set (scalar, avx2, avx512).
template <typename T>
const FastKernels<T>& fast_kernels();

}  // namespace limpid::microgpt
