// Byte-level BPE: GPT-2's, as GGUF carries it for Llama 3, Qwen, SmolLM and many more.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

class ByteLevelBpe final : public Tokenizer {
 public:
  // Throws UnsupportedError for an unknown `pre`, ArgumentError for what contradicts itself.
  explicit ByteLevelBpe(TokenizerSpec spec);
  ~ByteLevelBpe() override;

  using Tokenizer::encode;
  void encode(std::string_view text, const EncodeOptions& options,
              std::vector<TokenId>& out) const override;

 private:
  struct Scratch;
  void build_merges();
  void encode_text(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_piece(const char* p, size_t size, Scratch& scratch, std::vector<TokenId>& out) const;

  PreTokenizerRule rule_;
  bool ignore_merges_;
  std::array<TokenId, 256> byte_ids_;  // -1: the vocabulary lacks this byte
  PieceTable whole_pieces_;            // bytes -> id of normal tokens, if ignore_merges_
  MergeTable merges_;
  SpecialMatcher specials_;

  // Work spaces, one per encode that is under way.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace limpid
