// GGUF's `tokenizer.ggml.*` keys -> TokenizerSpec.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// The tokenizer that the checkpoint's metadata describe. Every key that changes the result is used
// or refused:
//   model, pre, tokens, scores, token_type, merges, {bos,eos,eot,eom,unknown,padding}_token_id,
//   add_{bos,eos}_token, add_space_prefix, remove_extra_whitespaces.
// Stop ids are eos, eot and eom, and the control or user-defined tokens whose names llama.cpp takes
// for an end of generation (docs/tokenizers.md). Throws FormatError naming file and key for what is
// missing or contradicts itself, UnsupportedError for another tokenizer model or pre-tokenizer.
TokenizerSpec tokenizer_spec_from(const Checkpoint& checkpoint);

// The same, built; what Tokenizer::create rejects is a FormatError of the checkpoint.
std::shared_ptr<const Tokenizer> tokenizer_from(const Checkpoint& checkpoint);

}  // namespace limpid
