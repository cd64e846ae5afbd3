// GPT-2 (Radford et al. 2019) with GGUF's names: LayerNorm with biases, learned positions, an MLP
// of two matrices, and one matrix [3 d_model, d_model] for Q, K and V.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

// Reads gpt2.{block_count, embedding_length, feed_forward_length, context_length, vocab_size,
// attention.head_count, attention.layer_norm_epsilon}. Limpid adds three keys that GGUF does not
// have: hidden_activation ("gelu_tanh", "gelu_erf", "relu", "silu"), attention.scale and
// attention.scale_by_inverse_layer.
DecoderSpec read_gpt2_spec(const Checkpoint& checkpoint);
TensorTable gpt2_tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec);

}  // namespace limpid
