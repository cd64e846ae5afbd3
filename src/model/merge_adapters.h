// Merges low-rank adapters into the matrices that they change.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"

namespace limpid {

// The type of the merged matrices.
enum class MergedType : uint8_t {
  kF32,
  kOfBase,  // that of W if it is f16 or bf16; f32 where W is quantised
};

// Returns a checkpoint without adapters (layouts/lora_adapter.h), in which each adapted matrix is W
// + scale B A. A matrix is computed when it is read; reading one throws FormatError if its type
// cannot hold a sum. Throws the errors of read_spec.
Checkpoint merge_adapters(const Checkpoint& canonical, MergedType type = MergedType::kF32);

}  // namespace limpid
