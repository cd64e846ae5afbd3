// Reads GPT-2's pair of files, vocab.json and merges.txt (OpenAI: encoder.json and vocab.bpe).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns byte-level BPE with GPT-2's pre-tokenizer, which is the meaning of the two files by
// themselves (`ByteLevelBPETokenizer` of `tokenizers`). The merges are lines "left right", best
// first, optionally after a first line "#version". `<|endoftext|>` is a control token, bos and eos.
// The paths are used in messages. Throws FormatError.
TokenizerSpec read_vocab_and_merges(const std::string& vocab_path, std::string_view vocab,
                                    const std::string& merges_path, std::string_view merges);

// Reads only the merges. Ids 0 to 255 are the bytes in the order of GPT-2's alphabet, followed by
// the result of each merge and by <|endoftext|>. OpenAI numbered its vocabulary in this way.
// Example: GPT-2's first merge is "Ġ t", so id 256 is " t".
TokenizerSpec read_merges_alone(const std::string& path, std::string_view merges);

using PieceIds = std::unordered_map<std::string_view, TokenId>;  // views into the JsonFile

// Fills `pieces` and `types` of the spec (kNormal; kUnused for gaps in the ids) and returns the ids
// by piece. Throws FormatError for duplicate pieces or ids, and for ids far beyond the number of
// pieces.
PieceIds read_vocabulary(const JsonPlace& place, TokenizerSpec& spec);

}  // namespace limpid
