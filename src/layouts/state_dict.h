// Bare state dictionaries: whose they are is told by their names, what they lack by the file's
// other entries, by shapes, or by the user.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// Metadata of a state dictionary's file stand below `state.`, those that the user gave (--config)
// below `given.`, which go first. What is in neither is taken from shapes; the number of heads and
// the activation cannot be. The result is canonical (layouts/canonical.h); a head that lies in the
// same bytes as the embedding is left, as tied. Throws UnsupportedError for names of no layout that
// is known and for hyper-parameters that nobody states, saying how to give them; FormatError where
// two sources differ.
Checkpoint canonical_from_state_dict(Checkpoint given);

}  // namespace limpid
