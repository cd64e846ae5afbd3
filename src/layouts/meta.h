// Checkpoints with the names of Meta's own code: consolidated.NN.pth beside params.json, and state
// dictionaries of scripts that follow it (llama2.c's train.py).
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/name_table.h"

namespace limpid {

// "layers.{}.attention.wq.weight" -> "blk.{}.attn_q.weight", …
const NameTable& meta_name_table();

// Whether the tensors are named so.
bool has_meta_names(const Checkpoint& checkpoint);

// Names and keys as GGUF's architecture `llama` has them. The parameters are those of params.json
// (metadata below `params.`, or `params.model.`), or what the file carries itself
// (`state.model_args.`, `state.params.`, `state.args.`); docs/formats/torch.md says what each means
// and what stands in for one that is absent. Throws UnsupportedError naming a parameter or tensor
// that Limpid does not know, FormatError for what is missing or contradicts the tensors.
Checkpoint meta_to_canonical(Checkpoint checkpoint);

// Rows of w1 and w3: multiple_of * ceil(int(multiplier * int(8 d_model / 3)) / multiple_of).
int64_t meta_hidden_size(int64_t d_model, int64_t multiple_of, double multiplier);

}  // namespace limpid
