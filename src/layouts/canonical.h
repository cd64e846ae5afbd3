// Translates a checkpoint of any supported layout into one vocabulary, GGUF's. The model families
// read only that vocabulary.
//
// A layout is a convention for naming configuration keys and tensors. The same query matrix, for
// example, has three names:
//   Hugging Face  model.layers.0.self_attn.q_proj.weight   (rows half-split, config.json)
//   Meta          layers.0.attention.wq.weight             (rows in interleaved pairs, params.json)
//   GGUF          blk.0.attn_q.weight                      (the canonical name)
// A translation renames tensors and keys, and records the order of the Q and K rows
// (tensor/row_order.h); it does not touch the numbers.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Returns the checkpoint with GGUF's keys and names. A GGUF checkpoint is returned unchanged. No
// tensor is copied: a tensor that must be transposed or joined becomes an entry of
// Checkpoint::derived, which is computed when it is read. Throws UnsupportedError naming a key or
// tensor that would change the result and that Limpid does not implement, and FormatError for
// contradictory keys or tensors.
Checkpoint to_canonical(Checkpoint checkpoint);

// Adds a configuration that the user supplies for a bare state dictionary. The keys are those of
// params.json for a dictionary with Meta's names and those of config.json for one with Hugging
// Face's names; nanoGPT and minGPT accept either. Throws ArgumentError for a checkpoint that has
// its own configuration, FormatError, ResourceError.
void add_configuration(Checkpoint& checkpoint, const std::string& config);

}  // namespace limpid
