// Writes a tokenizer as `tokenizers` reads it.
#pragma once

#include <string>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// tokenizer.json. Every piece stands in the vocabulary, so that ids stay what they are; control,
// unknown and user-defined pieces are added tokens besides. Merges by rank or score become a list
// (merge_list.h). Throws UnsupportedError for a pre-tokenizer or a way with spaces that has no
// spelling in that file, for pieces that are there twice, and for a SentencePiece vocabulary
// without byte tokens.
std::string write_tokenizer_json(const TokenizerSpec& spec);

}  // namespace limpid
