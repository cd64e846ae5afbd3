// From what a folder or file calls its keys and tensors to the one vocabulary that the model
// families read: GGUF's.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// The checkpoint with keys and names as GGUF has them; one that is GGUF already stays as it is. No
// tensor is copied: what has to be transposed or joined is promised (Checkpoint::derived). Throws
// UnsupportedError naming the key or tensor that would change the result and that Limpid does not
// implement, FormatError for what contradicts itself.
Checkpoint to_canonical(Checkpoint checkpoint);

// Adds what the user says of a bare state dictionary: the keys of params.json to one with Meta's
// names, of config.json to one with Hugging Face's, of either kind to nanoGPT's and minGPT's.
// Throws ArgumentError for a checkpoint that carries its own, FormatError, ResourceError.
void add_configuration(Checkpoint& checkpoint, const std::string& config);

}  // namespace limpid
