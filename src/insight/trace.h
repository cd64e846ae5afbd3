// A trace: what a model computed, layer by layer, for some tokens; computed by Limpid or by another
// engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "insight/probe_executor.h"
#include "model/model.h"

namespace limpid {

// One activation of a step, copied to the host.
struct Observation {
  // The name of its place: "embedding", "attn_heads", "ffn_residual", … Of a trace file:
  // trace_name.
  std::string what;
  int64_t layer = -1;  // the block; -1: outside the blocks, or part of the name
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  std::vector<float> values;  // [n_rows, n_cols]
};

// The tokens, and the activations of a step that evaluates all of them.
struct Trace {
  std::vector<int32_t> token_ids;
  std::vector<Observation> observations;  // in the order of the computation; the last is the logits
};

// The name of an observation in a trace file: "blk.3.ffn_residual", "output_norm".
std::string trace_name(const Observation& observation);

// Reads a trace file: the tensors `token_ids` [n] (whole numbers) and, under the names of
// trace_name, activations [n, d] in f32 or f64. tools/golden/make_trace.py writes such files as
// safetensors. Throws FormatError.
Trace read_trace(const Checkpoint& checkpoint);

// Runs the tokens in one step of a model whose executor is `probe`. They must be within the model's
// vocabulary and context. Throws what Model::step throws.
Trace trace_model(Model& model, ProbeExecutor& probe, std::span<const int32_t> token_ids);

}  // namespace limpid
