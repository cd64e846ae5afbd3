// Reads SentencePiece's binary tokenizer.model (Llama 2, Mistral 7B).
//
// The file is a Protocol Buffers message: a repeated field with the pieces (text, score, type), and
// the settings of the trainer and the normalizer.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Reads a BPE model with byte fallback: pieces, scores and types, the ids of special tokens, and
// the normalizer's treatment of spaces (sentencepiece_model.proto of SentencePiece). BOS is put
// before every text, as Meta's Llama 2 does. `path` is used in messages.
//
// Throws FormatError with the offset for a malformed file, and UnsupportedError naming a property
// that would give different ids: another model type, a character map (nmt_nfkc, …), spaces that are
// not escaped or that follow words, unused pieces, user-defined symbols together with a dummy
// prefix, a vocabulary without byte pieces.
TokenizerSpec read_sentence_piece_model(const std::string& path, std::string_view bytes);

}  // namespace limpid
