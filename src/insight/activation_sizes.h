// How large the activations of a text are, layer by layer: norms, features that stand out, and
// features and neurons that do nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "executor/place.h"
#include "insight/row_kernels.h"

namespace limpid {

// The sizes of one layer's activations: norms ||x|| of each token's row.
struct LayerNorms {
  int64_t layer = -1;            // -1: the embedding, of which there is only the stream
  std::vector<float> stream;     // [n_tokens], after the block
  std::vector<float> attention;  // [n_tokens], what attention adds
  std::vector<float> mlp;        // [n_tokens], what the MLP adds
  // The feature of the residual stream that is the largest, over all tokens, in root mean squares
  // of its token's row: 6 is large for normal numbers, models have features of 50 (Dettmers et al.
  // 2022, arXiv:2208.07339).
  int64_t outlier_feature = 0;
  int64_t outlier_token = 0;
  float outlier = 0;
  // Features of the residual stream that never exceed a hundredth of their token's root mean square
  // in this text, and neurons of the MLP that never exceed a hundredth of the layer's.
  int64_t n_dead = 0;
  int64_t n_quiet = 0;
  std::vector<int64_t> quiet;  // the first kMostNamed of these neurons
  static constexpr int64_t kMostNamed = 5;
};

// Measures activations as they are observed, some tokens at a time, on all threads of the pool.
class ActivationSizes {
 public:
  ActivationSizes(int64_t n_layers, ThreadPool& pool);

  // The activations that follow are those of n_tokens more tokens.
  void begin(int64_t n_tokens);
  // kEmbedding, kAttnOutput, kFfnHidden, kFfnOutput, kFfnResidual: [n_tokens, columns]. Other
  // places are ignored.
  void see(Place place, int64_t layer, std::span<const float> values);
  // Of all tokens [1 + n_layers], once.
  std::vector<LayerNorms> take();

 private:
  // The neurons of a layer's MLP.
  struct Neurons {
    std::vector<float> largest;  // |value| of each
    double squares = 0;          // the sum over all
  };

  void raise_columns(std::span<const float> values, std::span<const float> scales,
                     std::vector<float>& largest);
  void add_norms(std::vector<float>& norms, std::span<const float> values);
  void add_stream(LayerNorms& norms, std::span<const float> values);
  void add_neurons(Neurons& neurons, std::span<const float> values);
  void count_quiet(const Neurons& neurons, LayerNorms& norms) const;

  ThreadPool& pool_;
  const RowKernels& kernels_ = row_kernels();
  int64_t begin_ = 0;  // the tokens in progress: [begin_, end_)
  int64_t end_ = 0;
  std::vector<LayerNorms> norms_;
  std::vector<Neurons> neurons_;  // of each layer
  // Of the embedding and after each block: the largest size of each feature in root mean squares.
  std::vector<std::vector<float>> features_;
};

}  // namespace limpid
