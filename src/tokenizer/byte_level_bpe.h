// Byte-level BPE: GPT-2's, as GGUF carries it for Llama 3, Qwen, SmolLM and many more.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/encode_scratch.h"
#include "tokenizer/linear_bpe.h"
#include "tokenizer/piece_batch.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/regex_splitter.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class ByteLevelBpe final : public Tokenizer {
 public:
  // Throws ArgumentError for what contradicts itself, UnsupportedError for splits that are not
  // supported.
  explicit ByteLevelBpe(TokenizerSpec spec);

 private:
  void build_merges();
  void build_rank_merges();
  void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                   std::vector<TokenId>& out) const override;
  void encode_batch(PieceBatch& batch, EncodeScratch& scratch, IdSink& sink) const;
  void encode_seldom_piece(const PieceBatch& batch, const PieceBatch::Piece& piece,
                           EncodeScratch& scratch, IdSink& sink) const;
  // The ids of a piece, valid until the scratch is used again.
  std::span<const TokenId> ids_of(std::string_view piece, EncodeScratch& scratch) const;
  void find_unmergeable_pieces();

  std::array<TokenId, 256> byte_ids_;  // -1: the vocabulary lacks this byte
  LinearBpe bpe_;
  // Bytes -> id of normal tokens that merges do not give, if the spec ignores merges for whole
  // pieces.
  PieceTable unmergeable_pieces_;
  bool has_unmergeable_pieces_ = false;
  std::unique_ptr<const RegexSplitter> splitter_;  // where no scanner is written
};

}  // namespace limpid
