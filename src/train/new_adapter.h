// A low-rank adapter that begins to learn.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Adds an adapter to the checkpoint (layouts/lora_adapter.h) for every matrix whose module in PEFT
// is one of `targets`, names between commas ("q_proj,v_proj"; "": q_proj and v_proj, in GPT-2
// c_attn; "all-linear": every matrix but the output head). A is uniform in +-1/sqrt(inputs), B is
// 0, so the model gives the same results at first. Throws ArgumentError for a name that the model
// does not have and for a rank above both sides of a matrix, ResourceError.
void add_new_adapter(Checkpoint& canonical, int64_t rank, double alpha, const std::string& targets,
                     uint64_t seed);

}  // namespace limpid
