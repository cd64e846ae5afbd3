// Checkpoints with the tensor names of Meta's own code: consolidated.NN.pth beside params.json, and
// state dictionaries of scripts that use the same names (llama2.c's train.py).
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/name_table.h"

namespace limpid {

// The name table: "layers.{}.attention.wq.weight" -> "blk.{}.attn_q.weight", …
extern const NameTable kMetaNames;

// True if the tensors have Meta's names.
bool has_meta_names(const Checkpoint& checkpoint);

// Translates the parameters to the keys of GGUF's architecture `llama`. They come from params.json
// (metadata below `params.` or `params.model.`) or from the file itself (`state.model_args.`,
// `state.params.`, `state.args.`). docs/formats/torch.md lists the parameters and their defaults.
// The tensors, if there are any, have our names. Throws UnsupportedError naming an unknown
// parameter, FormatError for a missing one or one that contradicts the tensors.
Metadata read_meta_params(const Checkpoint& checkpoint);

// Returns the checkpoint with these keys and with our tensor names. Throws the errors of
// read_meta_params, and UnsupportedError for an unknown tensor.
Checkpoint meta_to_canonical(Checkpoint checkpoint);

// The number of rows of w1 and w3, as Meta's code computes it: multiple_of * ceil(int(multiplier *
// int(8 d_model / 3)) / multiple_of). Example: d_model 4096, multiple_of 256, multiplier 1:
// int(32768 / 3) = 10922, rounded up to a multiple of 256: 11008 rows (Llama 2 7B).
int64_t meta_hidden_size(int64_t d_model, int64_t multiple_of, double multiplier);

}  // namespace limpid
