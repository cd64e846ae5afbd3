// Describes one decoder-only transformer: its sizes, and a few choices from closed lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/row_order.h"

namespace limpid {

// RMSNorm divides by the root mean square; LayerNorm first subtracts the mean, and has biases.
enum class NormKind : uint8_t { kRms, kLayer };
// The norm outside of the blocks: after the last block or, in Karpathy's microgpt, before the
// first.
enum class OuterNorm : uint8_t { kOutput, kEmbedding };
// Rotary embedding of q and k in every layer, or a learned vector that is added to the token
// embedding.
enum class PositionKind : uint8_t { kRope, kLearned };
// The MLP: gated (kSwiGlu, three matrices), or two matrices with one function between them.
enum class MlpKind : uint8_t { kSwiGlu, kGeluTanh, kGeluErf, kRelu, kSilu };

// The rotary embedding. `inverse_frequencies` has the name that Hugging Face gave it (inv_freq),
// but its values are frequencies, in radians per position. They include every scaling (llama3,
// linear).
struct RopeSpec {
  int64_t n_rot = 0;
  double base = 10000.0;
  std::string scaling = "none";  // "none", "linear", "factors" (rope_freqs.weight): for `inspect`
  double scaling_factor = 1.0;
  std::vector<double> inverse_frequencies;  // [n_rot / 2]
};

// The description of one model, read from its keys. Example, Llama 3.2 1B: 16 layers, d_model 2048,
// 32 heads and 8 KV heads of 64, d_ff 8192, vocab_size 128256, n_ctx_train 131072, tied embeddings;
// norm, position and MLP are the defaults below.
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
  float attention_scale = 0;  // factor of q . k; 0: 1 / sqrt(head_dim)
  RopeSpec rope;

  // Choices from closed lists (at most eight).
  NormKind norm = NormKind::kRms;
  OuterNorm outer_norm = OuterNorm::kOutput;
  PositionKind position = PositionKind::kRope;
  MlpKind mlp = MlpKind::kSwiGlu;
  bool tied_embeddings = false;
  RowOrder row_order = RowOrder::kHalfSplit;  // order of the rows of Q and K in the file
  bool scale_by_inverse_layer = false;        // q . k of layer i is also divided by i + 1
};

}  // namespace limpid
