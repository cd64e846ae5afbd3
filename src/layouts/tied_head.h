// An output matrix that is the embedding.
#pragma once

#include <optional>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Of a checkpoint in our names: takes `output.weight` away when it is the same bytes as
// `token_embd.weight`, as in a file whose two names share one storage, and says so in
// Checkpoint::left. A model without `output.weight` is one with tied embeddings.
void tie_shared_head(Checkpoint& checkpoint);

// What a configuration says of it goes first: tied, and an `output.weight` that is there all the
// same is left; untied, and one that is missing is a FormatError of `their_name`. Absent:
// tie_shared_head.
void settle_head(Checkpoint& checkpoint, std::optional<bool> tied, const char* their_name);

}  // namespace limpid
