// SentencePiece BPE with byte fallback: Llama 2's, Mistral's, TinyLlama's.
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
  // Throws ArgumentError for what contradicts itself.
  explicit SentencePieceBpe(TokenizerSpec spec);

 private:
  void build_symbols();
  void build_score_merges();
  void build_list_merges();
  bool puts_space(std::string_view text, const Stretch& stretch) const;
  TokenId symbol_of(std::string_view character) const;
  void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                   std::vector<TokenId>& out) const override;
  const char* find_word_end(const char* p, const char* end, TokenId previous) const;
  void encode_word(std::string_view word, EncodeScratch& scratch, std::vector<TokenId>& out) const;
  void emit(const std::vector<TokenId>& symbols, const std::vector<std::string_view>& unknown,
            std::vector<TokenId>& out) const;
  void emit_bytes(std::string_view character, std::vector<TokenId>& out) const;

  // Symbols are token ids, then the characters that occur in pieces but are no pieces, then one for
  // all others.
  PieceTable symbols_;
  std::array<TokenId, 128> ascii_symbols_;
  std::vector<std::string> virtual_characters_;
  TokenId unknown_symbol_ = 0;
  TokenId space_symbol_ = 0;  // of U+2581
  MergeTable merges_;
  // Neighbouring characters (as symbols) that some piece holds side by side. No merge reaches
  // across two others, so text may be cut between them without any change in the result.
  MergeTable joined_;
  std::array<TokenId, 256> byte_ids_;  // -1: no byte tokens
};

}  // namespace limpid
