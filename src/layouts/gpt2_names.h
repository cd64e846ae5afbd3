// What other layouts call the tensors of a GPT-2.
#pragma once

#include "layouts/name_table.h"

namespace limpid {

// Hugging Face's GPT2LMHeadModel, with or without `transformer.`: Conv1D matrices, [in, out].
extern const NameTable kGpt2Conv1dNames;

// State dictionaries of nanoGPT and minGPT, old and new, and what grew from them: nn.Linear, [out,
// in]; names with `transformer.h.N`, or `blocks.N` and `tok_emb`; in front of them the `_orig_mod.`
// of torch.compile and the `module.` of DistributedDataParallel.
extern const NameTable kGpt2LinearNames;

}  // namespace limpid
