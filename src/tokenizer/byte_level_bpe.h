// Byte-level BPE, GPT-2's kind of tokenizer. Llama 3, Qwen, SmolLM and many others use it.
//
// Encoding has three stages. The pre-tokenizer cuts the text into pieces, usually words with the
// space before them; no token crosses a cut. Each piece is looked up in caches (piece_cache.h),
// because texts repeat their words. Only a piece that was not seen recently is merged
// (linear_bpe.h).
//   "Hello world" -> "Hello" | " world" -> [9906] [1917]   (Llama 3)
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/encode_scratch.h"
#include "tokenizer/linear_bpe.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/regex_splitter.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class ByteLevelBpe final : public Tokenizer {
 public:
  // Throws ArgumentError for a contradictory spec, UnsupportedError for splits that are not
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
  // Returns the ids of a piece. They are valid until the scratch is used again.
  std::span<const TokenId> ids_of(std::string_view piece, EncodeScratch& scratch) const;
  void find_byte_ids();
  void find_unmergeable_pieces();

  std::array<TokenId, 256> byte_ids_;  // -1: the vocabulary does not have this byte
  LinearBpe bpe_;
  // Normal tokens, by their bytes, that merging does not produce. Used if the spec ignores merges
  // for a piece that is a token as a whole.
  PieceTable unmergeable_pieces_;
  // Used if the pre-tokenizer has no hand-written scanner.
  std::unique_ptr<const RegexSplitter> splitter_;
};

}  // namespace limpid
