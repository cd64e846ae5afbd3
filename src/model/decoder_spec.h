// What distinguishes one decoder-only transformer from another: sizes, and a few closed choices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/row_order.h"

namespace limpid {

enum class NormKind : uint8_t { kRms, kLayer };
enum class PositionKind : uint8_t { kRope, kLearned };
// Gated (three matrices), or one function between two matrices.
enum class MlpKind : uint8_t { kSwiGlu, kGeluTanh, kGeluErf, kRelu, kSilu };

// Rotary embedding; inverse_frequencies already carry every scaling (llama3 factors, linear).
struct RopeSpec {
  int64_t n_rot = 0;
  double base = 10000.0;
  std::string scaling = "none";  // "none", "linear", "factors" (rope_freqs.weight): for `inspect`
  double scaling_factor = 1.0;
  std::vector<double> inverse_frequencies;  // [n_rot / 2]
};

struct DecoderSpec {
  std::string architecture;  // "llama", "gpt2", …
  int64_t n_layers = 0;
  int64_t d_model = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t d_ff = 0;
  int64_t vocab_size = 0;
  int64_t n_ctx_train = 0;
  float norm_eps = 1e-5F;
  float attention_scale = 0;  // of q . k; 0 stands for 1 / sqrt(head_dim)
  RopeSpec rope;

  // The closed choices (at most eight).
  NormKind norm = NormKind::kRms;
  PositionKind position = PositionKind::kRope;
  MlpKind mlp = MlpKind::kSwiGlu;
  bool tied_embeddings = false;
  RowOrder row_order = RowOrder::kHalfSplit;  // of the rows of Q and K in the file
  bool scale_by_inverse_layer = false;        // q . k of layer i is divided by i + 1 too
};

}  // namespace limpid
