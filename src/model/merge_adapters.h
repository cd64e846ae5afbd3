// Merges low-rank adapters into the matrices that they change.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// A checkpoint without adapters (layouts/lora_adapter.h) whose matrices include them: W + scale B
// A, in f32. A matrix is computed when it is read. Throws the errors of read_spec.
Checkpoint merge_adapters(const Checkpoint& canonical);

}  // namespace limpid
