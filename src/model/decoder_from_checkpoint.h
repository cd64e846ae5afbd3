// Turns a checkpoint's names and keys into a DecoderSpec and loaded weights.
//
// Loading has three steps. read_spec reads the keys of one family into a DecoderSpec. tensor_table
// lists the expected tensors for that spec. load_weights checks the shapes and hands the tensors to
// the executor, which decides how to store them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "model/decoder.h"
#include "model/decoder_spec.h"

namespace limpid {

// Reads general.architecture and the keys that the families share, and calls the reader of the
// family's own keys. Keys have GGUF's names. Every key that would change the
// result is either implemented or refused by name. Reads no tensor data except rope_freqs. Throws
// UnsupportedError, FormatError.
DecoderSpec read_spec(const Checkpoint& checkpoint);

class SpecReader;

// The Llama family: Llama 2 / 3 / 3.x, Mistral, SmolLM (architecture `llama`), Qwen2, Qwen3, ERNIE
// 4.5. Reads attention.{head_count_kv, key_length, value_length, layer_norm_rms_epsilon} and
// rope.*, and the divisors in rope_freqs.weight.
void read_llama_keys(SpecReader& reader, const Checkpoint& checkpoint, DecoderSpec& spec);

// GPT-2 (Radford et al. 2019): LayerNorm with biases, learned positions, an MLP of two matrices,
// and one matrix [3 d_model, d_model] for Q, K and V. Reads attention.layer_norm_epsilon. Limpid
// adds keys that GGUF does not have: hidden_activation ("gelu_tanh", "gelu_erf", "relu", "silu"),
// attention.scale, attention.scale_by_inverse_layer, and for Karpathy's microgpt norm ("layer",
// "rms") and outer_norm ("output", "embedding").
void read_gpt2_keys(SpecReader& reader, DecoderSpec& spec);

// A range of the rows of a matrix, or of the elements of a vector.
struct RowRange {
  int64_t begin = 0;
  int64_t n_rows = 0;  // 0: all of them
};

// One weight: the tensor that it comes from, its expected shape, and its place in DecoderWeights.
struct TensorEntry {
  std::string name;  // in the checkpoint
  Shape shape;       // of the whole tensor: [rows, cols] or [cols]
  Weight* place;     // receives the handle
  WeightUse use = WeightUse::kProjection;
  bool required = true;
  RowOrder row_order = RowOrder::kHalfSplit;
  RowRange rows{};     // the rows that this weight uses, e.g. Q of a fused QKV matrix (not copied)
  int64_t layer = -1;  // WeightSource::layer
};

// An adapter of the weight at `base`.
struct AdapterEntry {
  const Weight* base;
  LowRankUpdate update;
};

// Entries point into `weights` and `adapters`. `consumed` lists tensors that the model may contain
// and that need no loading.
struct TensorTable {
  std::unique_ptr<DecoderWeights> weights;
  std::vector<TensorEntry> entries;
  std::vector<std::string> consumed;
  std::deque<AdapterEntry> adapters;  // addresses stay
};

// Lists every tensor that the model can have: the names and shapes for load_weights.
TensorTable tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec);

// What load_weights will load, in its order. A tensor that is derived from others has no data.
// Throws FormatError for a missing tensor, a wrong shape and a type that weights cannot have;
// UnsupportedError for a tensor that the model does not have and that would change the result.
std::vector<WeightSource> weight_sources(const Checkpoint& checkpoint, const DecoderSpec& spec);

// Loads every tensor of the model into the executor. Throws as weight_sources does. Weights of
// block `first_layer_in_file` and later ones stay there (WeightSource::stays_in_file).
DecoderWeights load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            Executor& executor,
                            const std::function<bool(uint64_t done, uint64_t total)>& progress = {},
                            int64_t first_layer_in_file = INT64_MAX);

}  // namespace limpid
