// Byte-level BPE: GPT-2's, as GGUF carries it for Llama 3, Qwen, SmolLM and many more.
#pragma once

#include <array>
#include <vector>

#include "tokenizer/encode_scratch.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class ByteLevelBpe final : public Tokenizer {
 public:
  // Throws ArgumentError for what contradicts itself.
  explicit ByteLevelBpe(TokenizerSpec spec);

 private:
  void build_merges();
  void build_rank_merges();
  void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                   std::vector<TokenId>& out) const override;
  void encode_piece(std::string_view piece, EncodeScratch& scratch,
                    std::vector<TokenId>& out) const;

  std::array<TokenId, 256> byte_ids_;  // -1: the vocabulary lacks this byte
  PieceTable whole_pieces_;            // bytes -> id of normal tokens, if the spec ignores merges
  MergeTable merges_;
};

}  // namespace limpid
