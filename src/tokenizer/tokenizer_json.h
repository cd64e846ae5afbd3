// Hugging Face's tokenizer.json -> TokenizerSpec.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Reads byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM, …) and SentencePiece's BPE as Hugging Face
// writes it (Llama 2, Mistral): the vocabulary, the list of merges, added tokens with all their
// flags, and what the normalizer, pre-tokenizer, post-processor and decoder do. The file alone does
// not say which tokens are bos and eos; bos (eos) is set where the post-processor puts one before
// (behind) every text, and tokenizer_config.json knows the rest. `path` is for messages.
//
// Throws FormatError for what is no tokenizer.json or contradicts itself, UnsupportedError that
// names the component or option that Limpid does not do: nothing is left out silently.
TokenizerSpec read_tokenizer_json(const std::string& path, std::string_view bytes);

}  // namespace limpid
