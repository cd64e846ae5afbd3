// Describes a model from another layout in GGUF's keys.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Returns the canonical checkpoint ready for GGUF: completed (completed.h), with the tokenizer's
// files as `tokenizer.ggml.*` keys. What GGUF has no keys for is converted (the factors of llama3's
// scaling become the tensor rope_freqs.weight). Adds sentences to `remarks`, mostly about behaviour
// of Limpid that other readers of the file will not reproduce. Throws UnsupportedError for a
// tokenizer that GGUF cannot express.
Checkpoint described_for_gguf(const Checkpoint& canonical, std::vector<std::string>& remarks);

}  // namespace limpid
