// The tokenizer of a checkpoint: GGUF's `tokenizer.ggml.*` keys, or the files beside the weights.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Whether the checkpoint carries one, known or not.
bool has_tokenizer(const Checkpoint& checkpoint);

// The tokenizer that the checkpoint's metadata describe, or its attachments (tokenizer_files.h),
// with the stop ids of generation_config.json. Of GGUF's keys every one that changes the result is
// used or refused:
//   model, pre, tokens, scores, token_type, merges, {bos,eos,eot,eom,unknown,padding}_token_id,
//   add_{bos,eos}_token, add_space_prefix, remove_extra_whitespaces.
// Stop ids are eos, eot and eom, and the control or user-defined tokens whose names llama.cpp takes
// for an end of generation (docs/tokenizers.md). Throws FormatError naming file and key for what is
// missing or contradicts itself, UnsupportedError for another tokenizer model or pre-tokenizer.
TokenizerSpec tokenizer_spec_from(const Checkpoint& checkpoint);

// The same, built; what Tokenizer::create rejects is a FormatError of the checkpoint.
std::shared_ptr<const Tokenizer> tokenizer_from(const Checkpoint& checkpoint);

// Puts these files in the place of the checkpoint's own tokenizer and, if there is one among them,
// of its chat template.
void replace_tokenizer(Checkpoint& checkpoint, const TokenizerFiles& files);

// The same with llama2.c's tokenizer.bin, of as many tokens as the embedding has rows. Throws
// FormatError, ResourceError, UnsupportedError for a canonical checkpoint without an embedding.
void replace_tokenizer_by_llama2c(Checkpoint& checkpoint, const std::string& path);

}  // namespace limpid
