// Writes a tokenizer as `tokenizers` reads it.
#pragma once

#include <string>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// tokenizer.json of a byte-level BPE. Every piece stands in the vocabulary, so that ids stay what
// they are; control and user-defined pieces are added tokens besides. Throws UnsupportedError for
// another kind, for a pre-tokenizer that has no spelling in that file, and for pieces that are
// there twice.
std::string write_tokenizer_json(const TokenizerSpec& spec);

}  // namespace limpid
