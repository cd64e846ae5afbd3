// An output matrix that is the embedding.
#pragma once

#include <optional>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Of a checkpoint in our names: takes `output.weight` away when it is the same bytes as
// `token_embd.weight`, as in a file whose two names share one storage, and says so in
// Checkpoint::unused_tensors. A model without `output.weight` is one with tied embeddings.
void tie_shared_head(Checkpoint& checkpoint);

// The configuration decides when it says anything. If it says tied, an `output.weight` in the file
// is left unused. If it says untied, a missing one is a FormatError that names `their_name`. If it
// says nothing: tie_shared_head.
void resolve_output_weight(Checkpoint& checkpoint, std::optional<bool> tied,
                           const char* their_name);

}  // namespace limpid
