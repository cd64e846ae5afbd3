// SentencePiece's binary tokenizer.model (Llama 2, Mistral 7B) -> TokenizerSpec.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Reads a BPE model with byte fallback: pieces, scores and types, which ids are special, and what
// the normalizer does with spaces (sentencepiece_model.proto of SentencePiece). BOS is put before
// every text, as Meta's Llama 2 does. `path` is for messages.
//
// Throws FormatError with the offset for what is no such file, and UnsupportedError that names what
// would give other ids: another model type, a character map (nmt_nfkc, …), spaces that are not
// escaped or stand behind words, unused pieces, user-defined symbols after a dummy prefix, a
// vocabulary without byte pieces.
TokenizerSpec read_sentence_piece_model(const std::string& path, std::string_view bytes);

}  // namespace limpid
