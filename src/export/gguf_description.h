// What a GGUF file says about a model that came in another layout.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

struct GgufDescription {
  Checkpoint checkpoint;
  // What other programs that read the file will not do as Limpid does, a sentence each.
  std::vector<std::string> remarks;
};

// A canonical checkpoint as GGUF has it: completed (completed.h), the tokenizer's files as
// `tokenizer.ggml.*` keys, and keys that GGUF has no reader for as what it has (the factors of
// llama3's scaling are a tensor, rope_freqs.weight). Throws UnsupportedError for a tokenizer that
// GGUF cannot express.
GgufDescription described_for_gguf(const Checkpoint& canonical);

// The keys below `tokenizer.ggml.` alone. Throws UnsupportedError.
void set_tokenizer_keys(Metadata& metadata, const TokenizerSpec& spec);

}  // namespace limpid
