// Computes the plan of memory from a checkpoint's header.
#pragma once

#include "checkpoint/checkpoint.h"
#include "limpid/memory_plan.hpp"
#include "limpid/model.hpp"
#include "model/decoder_spec.h"

namespace limpid {

// `options.n_ctx` 0 takes the model's own context, or the largest multiple of 256 of it that fits
// beside the weights.
MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options);
// Throws ResourceError, with the numbers and what to reduce, when the plan does not fit.
void check_memory_plan(const MemoryPlan& plan);

}  // namespace limpid
