// A trace: what a model computed, layer by layer, for some tokens. Ours, or another engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "insight/tap_executor.h"
#include "model/model.h"

namespace limpid {

struct Trace {
  std::vector<int32_t> token_ids;
  std::vector<Observation> observations;  // in the order of the computation; the last are logits
};

// The name of an observation in a trace file: "blk.3.ffn_residual", "output_norm".
std::string trace_name(const Observation& observation);

// A trace file: the tensors `token_ids` [n] (whole numbers) and, named as trace_name has them, f32
// or f64 [n, d] activations. tools/golden/make_trace.py writes such files as safetensors. Throws
// FormatError.
Trace read_trace(const Checkpoint& checkpoint);

// Runs the tokens, which must be within the model's vocabulary and context, in one step on
// `executor`. What Model::load and Model::step throw.
Trace trace_model(std::shared_ptr<const Checkpoint> checkpoint, std::unique_ptr<Executor> executor,
                  std::span<const int32_t> token_ids, const LoadOptions& options = {});

}  // namespace limpid
