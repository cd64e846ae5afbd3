// SentencePiece BPE with byte fallback: Llama 2's, Mistral's, TinyLlama's.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class SentencePieceBpe final : public Tokenizer {
 public:
  // Throws ArgumentError for what contradicts itself.
  explicit SentencePieceBpe(TokenizerSpec spec);

  using Tokenizer::encode;
  void encode(std::string_view text, const EncodeOptions& options,
              std::vector<TokenId>& out) const override;

 private:
  // Symbols beyond the vocabulary: characters that occur in pieces but are no pieces, then one for
  // all others.
  TokenId symbol_of(std::string_view character) const;
  void build_merges();
  void encode_text(std::string_view text, std::vector<TokenId>& out) const;
  void emit_bytes(std::string_view character, std::vector<TokenId>& out) const;

  PieceTable symbols_;  // bytes -> id or virtual symbol
  std::vector<std::string> virtual_characters_;
  TokenId unknown_symbol_ = 0;
  std::array<TokenId, 256> byte_ids_;  // -1: no byte tokens
  MergeTable merges_;
  SpecialMatcher specials_;
};

}  // namespace limpid
