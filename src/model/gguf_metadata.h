// What a GGUF file says about a model that came in another layout.
#pragma once

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// A canonical checkpoint as GGUF has it: the tokenizer's files become `tokenizer.ggml.*` keys, and
// keys that GGUF has no reader for become what it has (the factors of llama3's scaling are a
// tensor, rope_freqs.weight). One that was GGUF stays as it is. Throws UnsupportedError for a
// tokenizer that GGUF cannot express.
Checkpoint described_for_gguf(const Checkpoint& canonical);

// The keys below `tokenizer.ggml.` alone. Throws UnsupportedError.
void set_tokenizer_keys(Metadata& metadata, const TokenizerSpec& spec);

}  // namespace limpid
