// Reads Hugging Face's tokenizer.json.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Reads byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM, …) and SentencePiece's BPE as Hugging Face
// writes it (Llama 2, Mistral): the vocabulary, the list of merges, added tokens with all their
// flags, and the effects of the normalizer, pre-tokenizer, post-processor and decoder. The file
// does not say which tokens are bos and eos. bos is set if the post-processor puts a token before
// every text, eos if it puts one after it; tokenizer_config.json has the rest. `path` is used in
// messages.
//
// Throws FormatError for a malformed or contradictory file, and UnsupportedError naming a component
// or option that Limpid does not support. Nothing is ignored silently.
TokenizerSpec read_tokenizer_json(const std::string& path, std::string_view bytes);

}  // namespace limpid
