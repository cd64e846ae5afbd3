// The decoder-only transformer. All model families share this one forward pass.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "model/decoder_spec.h"

namespace limpid {

// The weights of one block. A handle is invalid if the model does not have the weight.
struct BlockWeights {
  Weight attn_norm, attn_norm_bias;
  Weight wq, wk, wv, wo;
  Weight bq, bk, bv, bo;
  Weight q_norm, k_norm;  // RMSNorm of each head before RoPE
  Weight ffn_norm, ffn_norm_bias;
  Weight w_gate, w_up, w_down;
  Weight b_gate, b_up, b_down;
};

// A low-rank update of a projection (Hu et al. 2021, arXiv:2106.09685): y += scale * (x A^T) B^T.
struct LowRankUpdate {
  Weight a;  // [rank, inputs]
  Weight b;  // [outputs, rank]
  double scale = 1;
  int64_t adapter = 0;  // the number of the adapter that it belongs to
};

// All weights of a model as handles of an executor. Shapes are [rows, cols] = [outputs, inputs]: wq
// is [n_heads * head_dim, d_model], w_down is [d_model, d_ff].
struct DecoderWeights {
  Weight token_embedding, position_embedding;
  std::vector<BlockWeights> blocks;
  Weight embedding_norm, embedding_norm_bias;  // these or the next two: DecoderSpec::outer_norm
  Weight output_norm, output_norm_bias;
  Weight output;  // equals token_embedding when tied
  RopeTable rope;
  std::map<int32_t, std::vector<LowRankUpdate>> updates;  // by the id of the weight
  std::vector<Tensor> derived;  // joined or transposed tensors; the executor reads their memory
};

// The factor of q . k, usually 1 / sqrt(head_dim). Some models divide it by the number of the layer
// as well: Mistral's GPT-2 (stanford-crfm) does so to train in half precision.
float attention_scale(const DecoderSpec& spec, int64_t layer);

// The result of a forward pass for each requested token.
enum class PassResult : uint8_t {
  kLogits,  // [n_outputs, vocab_size]
  kHidden,  // [n_outputs, d_model]: the last layer's result after the output norm
};

// The end of the forward pass alone: the final norm and the output matrix. It computes logits from
// any residual stream as if the model ended there (the logit lens; nostalgebraist 2020,
// "interpreting GPT"). stream [n_outputs, d_model], as select_outputs returns it. The logits
// [n_outputs, vocab_size] are shown in parts (Executor::linear_in_parts).
void read_out(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
              Activation stream, const SeePart& see);

// Layers [begin, end) of a model; `end` may be larger than their number.
struct LayerRange {
  int64_t begin = 0;
  int64_t end = INT64_MAX;
};

// Runs the forward pass of one step, between begin_step and end_step. `adapter_factors` multiply
// the scales of the adapters, by number; an adapter with the factor 0 is skipped, so that the
// result has the bits of a model without it. Empty: all are 1.
//
// A pass may run in parts, each in a step of its own. The first part begins with the embedding,
// each other one with the residual stream [T, d_model] that the part before it returned. The part
// with the last layer returns the result.
Activation forward(Executor& executor, const DecoderSpec& spec, const DecoderWeights& weights,
                   KvStorage& kv, PassResult result, std::span<const double> adapter_factors,
                   LayerRange layers = {}, Activation stream = {});

}  // namespace limpid
