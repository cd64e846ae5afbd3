// A trace: what a model computed, layer by layer, for some tokens; computed by Limpid or by another
// engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "insight/tap_executor.h"
#include "model/model.h"

namespace limpid {

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

// Runs the tokens in one step of a model whose executor is `tap`. They must be within the model's
// vocabulary and context. Throws what Model::step throws.
Trace trace_model(Model& model, TapExecutor& tap, std::span<const int32_t> token_ids);

}  // namespace limpid
