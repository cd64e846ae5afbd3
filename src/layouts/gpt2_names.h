// Names of a GPT-2's tensors in layouts other than GGUF.
#pragma once

#include "layouts/name_table.h"

namespace limpid {

// Hugging Face's GPT2LMHeadModel, with or without the prefix `transformer.`. Its Conv1D matrices
// are [in, out], so they are transposed.
extern const NameTable kGpt2Conv1dNames;

// State dictionaries of nanoGPT and minGPT (old and new versions) and of their descendants. Their
// nn.Linear matrices are [out, in]. Names begin with `transformer.h.N` or with `blocks.N` and
// `tok_emb`. torch.compile adds the prefix `_orig_mod.`, DistributedDataParallel adds `module.`.
extern const NameTable kGpt2LinearNames;

}  // namespace limpid
