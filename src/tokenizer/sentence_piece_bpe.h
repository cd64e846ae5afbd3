// SentencePiece BPE with byte fallback: the tokenizer of Llama 2, Mistral and TinyLlama.
//
// Differences from byte-level BPE: the symbols to merge are characters, not bytes; a space is the
// character U+2581 (▁) inside pieces; the order of merges comes from scores (highest first, the
// leftmost among equals); and no pre-tokenizer cuts the text. A character without a piece becomes
// byte tokens (<0xE2> <0x82> <0xAC> for €).
//   "Hello world" -> "▁Hello▁world" -> [▁Hello, ▁world]   (a space is put before the text)
//
// Without cuts, a whole book would be one piece to merge. `joined_` makes cuts safe: it lists all
// pairs of characters that are adjacent inside some piece. No merge can cross two characters that
// are adjacent in no piece, so the text may be cut between them without changing the result. In
// practice it may be cut before almost every space, so words can be encoded separately and cached.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tokenizer/encode_scratch.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class SentencePieceBpe final : public Tokenizer {
 public:
  // Throws ArgumentError for a contradictory spec.
  explicit SentencePieceBpe(TokenizerSpec spec);

 private:
  void build_symbols();
  void build_score_merges();
  void build_list_merges();
  TokenId symbol_of(std::string_view character) const;
  void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                   std::vector<TokenId>& out) const override;
  const char* find_word_end(const char* p, const char* end, TokenId previous) const;
  void encode_word(std::string_view word, EncodeScratch& scratch, std::vector<TokenId>& out) const;
  void emit(const std::vector<TokenId>& symbols, std::vector<TokenId>& out) const;
  void emit_bytes(std::string_view character, std::vector<TokenId>& out) const;

  // Symbols are numbered: first the token ids, then the characters that occur in pieces but are not
  // pieces, then one symbol for all other characters.
  PieceTable symbols_;
  std::array<TokenId, 128> ascii_symbols_;
  std::vector<std::string> virtual_characters_;
  TokenId unknown_symbol_ = 0;
  TokenId space_symbol_ = 0;  // symbol of U+2581
  MergeTable merges_;
  // Pairs of characters (as symbols) that are adjacent in some piece. The text may be cut between
  // any other two characters.
  MergeTable joined_;
  std::array<TokenId, 256> byte_ids_;  // -1: no byte tokens
};

}  // namespace limpid
