// An output matrix that is the embedding.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// Of a checkpoint in our names: takes `output.weight` away when it is the same bytes as
// `token_embd.weight`, as in a file whose two names share one storage, and says so in
// Checkpoint::left. A model without `output.weight` is one with tied embeddings.
void tie_shared_head(Checkpoint& checkpoint);

}  // namespace limpid
