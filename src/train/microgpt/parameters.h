// The parameters of a model: the matrices, their order, and their initial values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/microgpt/config.h"
#include "train/microgpt/python_random.h"

namespace limpid::microgpt {

// A matrix at `offset` in the array of all parameters. Its rows follow one another, and so do the
// matrices.
struct Matrix {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t size() const { return rows * cols; }
  int64_t row(int64_t r) const { return offset + r * cols; }
};

// The matrices of one layer.
struct LayerMatrices {
  Matrix attn_wq, attn_wk, attn_wv, attn_wo;  // [n_embd, n_embd]
  Matrix mlp_fc1;                             // [4 n_embd, n_embd]
  Matrix mlp_fc2;                             // [n_embd, 4 n_embd]
};

// Example: 27 tokens, block_size 8, n_embd 16, one layer: wte 432 + wpe 128 + lm_head 432 + 4 * 256
// for attention + 2 * 1,024 for the MLP = 4,064 parameters.
struct Matrices {
  // Throws ArgumentError for an invalid shape, or when the node ids cannot count the model's
  // parameters.
  explicit Matrices(const Shape& shape);

  Matrix wte;      // [vocab_size, n_embd]
  Matrix wpe;      // [block_size, n_embd]
  Matrix lm_head;  // [vocab_size, n_embd]
  std::vector<LayerMatrices> layers;
  int64_t n_params = 0;

  struct Named {
    std::string name;  // as in the Python program: "wte", "layer0.attn_wq"
    Matrix matrix;
  };
  std::vector<Named> named;  // all of them, in their order
};

// Returns normal numbers with mean 0, row by row in the order of Matrices.
std::vector<double> initial_weights(const Matrices& matrices, double deviation, RandomStyle style,
                                    PythonRandom& random);

}  // namespace limpid::microgpt
