// Writes a tokenizer in the format of `tokenizers`.
#pragma once

#include <string>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns a tokenizer.json. Every piece is in the vocabulary, so that ids stay the same; control,
// unknown and user-defined pieces are added tokens as well. Merges by rank or score become a list
// (merge_list.h). Throws UnsupportedError for a pre-tokenizer or a treatment of spaces that the
// format cannot express, for pieces that are duplicates or not UTF-8, and for a SentencePiece
// vocabulary without byte tokens.
std::string write_tokenizer_json(const TokenizerSpec& spec);

}  // namespace limpid
