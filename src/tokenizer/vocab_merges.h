// GPT-2's pair of files, vocab.json and merges.txt (OpenAI: encoder.json, vocab.bpe) ->
// TokenizerSpec.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Byte-level BPE cut as GPT-2 cuts, which is what the two files stand for by themselves
// (`ByteLevelBPETokenizer` of `tokenizers`). The merges are lines "left right", best first, with or
// without a first line "#version". `<|endoftext|>` is a control token, bos and eos. Paths are for
// messages. Throws FormatError.
TokenizerSpec read_vocab_and_merges(const std::string& vocab_path, std::string_view vocab,
                                    const std::string& merges_path, std::string_view merges);

// The merges alone: ids 0 to 255 are the bytes in the order of GPT-2's alphabet, then what each
// line merges into, then <|endoftext|>. So OpenAI numbered its own vocabulary.
TokenizerSpec read_merges_alone(const std::string& path, std::string_view merges);

}  // namespace limpid
