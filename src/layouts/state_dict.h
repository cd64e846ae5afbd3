// Bare state dictionaries. The tensor names identify the model. Missing hyper-parameters come from
// the file's other entries, from the shapes of the tensors, or from the user.
#pragma once

#include "checkpoint/checkpoint.h"

namespace limpid {

// Metadata of the file have the prefix `state.`; those that the user gives (--config) have the
// prefix `given.` and take precedence. Sizes in neither are taken from shapes, but shapes show
// neither the number of heads nor the activation. The result is canonical (layouts/canonical.h). An
// output matrix with the same bytes as the embedding is recorded as unused, which means tied.
// Throws UnsupportedError for unknown tensor names and for hyper-parameters that no source states
// (the message says how to give them), FormatError when two sources differ.
Checkpoint canonical_from_state_dict(Checkpoint given);

}  // namespace limpid
