// Merges low-rank adapters into the matrices that they change.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// Returns a checkpoint without adapters (layouts/lora_adapter.h), in which each adapted matrix is W
// + scale B A, in f32. A matrix is computed when it is read. Throws the errors of read_spec.
Checkpoint merge_adapters(const Checkpoint& canonical);

}  // namespace limpid
