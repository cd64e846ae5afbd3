// The decoder-only transformer, written once.
#pragma once

#include <vector>

#include "executor/executor.h"
#include "model/decoder_spec.h"

namespace limpid {

// Invalid handles stand for what the model does not have.
struct BlockWeights {
  Weight attn_norm, attn_norm_bias;
  Weight wq, wk, wv, wo;
  Weight bq, bk, bv, bo;
  Weight q_norm, k_norm;  // RMSNorm of each head before RoPE
  Weight ffn_norm, ffn_norm_bias;
  Weight w_gate, w_up, w_down;
  Weight b_gate, b_up, b_down;
};

struct DecoderWeights {
  Weight token_embedding, position_embedding;
  std::vector<BlockWeights> blocks;
  Weight output_norm, output_norm_bias;
  Weight output;  // the token embedding's handle when tied
  RopeTable rope;
  std::vector<Tensor> derived;  // made of several tensors, or transposed: the executor reads them
};

// The forward pass of one step (between begin_step and end_step): logits [n_outputs, vocab_size].
Activation forward(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
                   KvStorage& kv);

}  // namespace limpid
