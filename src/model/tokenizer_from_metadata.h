// Reads the tokenizer of a checkpoint, from GGUF's keys `tokenizer.ggml.*` or from the files beside
// the weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// True if the checkpoint contains a tokenizer, of a known or an unknown kind.
bool has_tokenizer(const Checkpoint& checkpoint);
// Throws UnsupportedError, which says what to do.
[[noreturn]] void fail_without_tokenizer(const Checkpoint& checkpoint);

// Reads the tokenizer from the checkpoint's metadata or from its attachments (tokenizer_files.h),
// with the stop ids of generation_config.json. Every GGUF key that changes the result is used or
// refused. These keys are used:
//   model, pre, tokens, scores, token_type, merges, {bos,eos,eot,eom,unknown,padding}_token_id,
//   add_{bos,eos}_token, add_space_prefix, remove_extra_whitespaces.
// Stop ids are eos, eot and eom, and the control or user-defined tokens whose names llama.cpp
// treats as an end of generation (docs/tokenizers.md). Throws FormatError naming file and key for
// missing or contradictory values, UnsupportedError for another tokenizer model or pre-tokenizer
// and for a checkpoint without a tokenizer.
TokenizerSpec tokenizer_spec_from(const Checkpoint& checkpoint);

// Builds the tokenizer of tokenizer_spec_from. If Tokenizer::create rejects the spec, throws a
// FormatError that names the file.
std::shared_ptr<const Tokenizer> tokenizer_from(const Checkpoint& checkpoint);

// Throws UnsupportedError if a canonical checkpoint's embedding has fewer rows than the tokenizer
// has tokens.
void check_tokenizer_fits(const Checkpoint& checkpoint, const TokenizerSpec& spec);

// What is wrong with the tokenizer and the chat template, which running and chatting would refuse:
// one sentence each, with the reason. A model without them has no problem.
std::vector<std::string> text_problems(const Checkpoint& checkpoint);

// Replaces the checkpoint's tokenizer by these files, and its chat template if the files contain
// one.
void replace_tokenizer(Checkpoint& checkpoint, const TokenizerFiles& files);

// Replaces the checkpoint's tokenizer by llama2.c's tokenizer.bin, which must have as many tokens
// as the embedding has rows. Throws FormatError, ResourceError, and UnsupportedError for a
// canonical checkpoint without an embedding.
void replace_tokenizer_by_llama2c(Checkpoint& checkpoint, const std::string& path);

}  // namespace limpid
