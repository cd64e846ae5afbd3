// Handles an output matrix that is the token embedding ("tied" embeddings: one matrix [vocab_size,
// d_model] serves both ends).
#pragma once

#include <optional>

#include "checkpoint/checkpoint.h"

namespace limpid {

// For a checkpoint with canonical names: removes `output.weight` when its bytes are those of
// `token_embd.weight`, as in a file whose two names share one storage, and records it in
// Checkpoint::unused_tensors. A model without `output.weight` has tied embeddings.
void tie_shared_head(Checkpoint& checkpoint);

// Applies what the configuration says about tying. True: an `output.weight` that equals the
// embedding becomes unused; one with other values contradicts the configuration and is used, as by
// transformers 5. False: a missing `output.weight` is a FormatError. If it says nothing, calls
// tie_shared_head.
void resolve_output_weight(Checkpoint& checkpoint, std::optional<bool> tied);

}  // namespace limpid
