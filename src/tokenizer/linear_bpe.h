// Byte-pair encoding in time linear in the text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/merger.h"

namespace limpid {

// Computes the result of byte-pair merging without merging, by a search from left to right.
//
// Merging repeatedly replaces the neighbouring pair of lowest rank, the leftmost among equals
// (merger.h). Two facts about its result make the search possible:
//
// 1. A sequence of tokens is the result for its text if and only if each token is the result for
// its own bytes, and each two neighbours "fit": the two tokens are the result for their joined
// bytes. Reason: if no merge crosses a boundary, the merges on one side of it do not depend on the
// other side; and if a merge did cross a boundary, the first such merge would also happen in the
// joined bytes of the two neighbours alone.
//
// 2. Every prefix of the text has exactly one such sequence. The search therefore takes the longest
// token at each position and tries shorter ones if the token does not fit its left neighbour. If
// none fits, the position is marked as dead and the search goes back by one token. A dead position
// is never tried again, so each position is visited once.
//
// Example: merges "b c" (rank 0) and "a b" (rank 1), text "abc". Merging gives [a, bc].
//   at 0: longest token "ab"
//   at 2: "c". (ab, c) does not fit: b and c merge (rank 0) before "ab" is formed (rank 1).
//         No shorter token, so position 2 is dead; go back.
//   at 0: next shorter token "a"
//   at 1: longest token "bc". (a, bc) fits: "a b" has a higher rank than "b c".  -> [a, bc]
//
// `fit` decides by undoing merges in reverse order, the latest first: at each stage it asks whether
// the two tokens at the boundary would have merged with each other before they merged with their
// other neighbours. The idea comes from the `bpe` crate of GitHub's rust-gems. This version is more
// general: a token may be formed in several ways, ids need not follow the order of merges, and a
// merge may rank before a merge that formed one of its parts (docs/tokenizers.md).
class LinearBpe {
 public:
  struct Merge {
    TokenId left, right;  // -1: any two tokens that give `bytes`
    uint32_t rank;
    TokenId merged;
    uint32_t size;                // of the merged token: more than that of each of its parts
    std::string_view bytes = {};  // of the merged token; only where left and right are -1
  };
  // The working memory of the search: one per thread, used with one LinearBpe only.
  class Work {
   public:
    Work() : fits_(size_t{1} << kBits) {}

   private:
    friend class LinearBpe;
    static constexpr int kBits = 16;
    // A direct-mapped cache of the answers of `fit`.
    std::vector<uint32_t> fits_;
    std::vector<uint64_t> dead_;  // one bit per position: no valid sequence reaches it
    std::vector<TokenId> tokens_;
    int64_t steps_left_ = 0;  // the search may take; then merging replaces it
    Merger merger_;
  };

  LinearBpe() = default;
  // `merges` may be in any order. They come from a merge list, which must not contain a pair twice;
  // or, for a vocabulary without a list, there is one for each token, without left and right: two
  // tokens merge if their joined bytes are a token. No two tokens may then have the same bytes.
  // `byte_ids` are -1 for bytes without a token. Takes O(n log n) time for n bytes of all tokens
  // together. Throws UnsupportedError for 2^23 ids or more.
  LinearBpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges);

  // Returns whether the bytes of the token merge into the token.
  bool stands_alone(TokenId id) const {
    return static_cast<size_t>(id) < sizes_.size() && sizes_[static_cast<size_t>(id)] != 0;
  }
  // Returns the tokens of `piece`, or none if a byte has no token. The result is valid until the
  // next call with `work`. The time is linear in the piece for vocabularies that come from
  // training. A vocabulary can be constructed for which the search reads far ahead at each position
  // or tries many tokens there. The number of steps is therefore limited in proportion to the
  // piece; beyond it, merging computes the same tokens in O(n log n).
  std::span<const TokenId> encode(std::string_view piece, Work& work) const;

 private:
  // The merge that forms a token from its bytes. Other merges with the same result are never used.
  struct Origin {
    TokenId left = -1, right = -1;  // -1: a byte
    // The moment of the merge in the process of merging: 1 plus the highest rank used so far, 0 for
    // a byte. A merge with a lower rank than the merge that formed its part happens at once after
    // it, and so has the same time.
    uint32_t time = 0;
    uint32_t rank : 30 = 0;
    uint32_t follows_left : 1 = 0;   // happens at once after the merge of its left part
    uint32_t follows_right : 1 = 0;  // or of its right part
  };
  // Two tokens at a boundary, and the ranks at which each one merges with its other neighbour.
  struct Pair {
    TokenId left, right;
    uint32_t left_ends = MergeTable::kNoRank;
    uint32_t right_ends = MergeTable::kNoRank;
  };
  const Origin& origin(TokenId id) const { return origins_[static_cast<size_t>(id)]; }
  uint32_t size_of(TokenId id) const { return sizes_[static_cast<size_t>(id)]; }
  bool fit(TokenId left, TokenId right, Work& work) const;
  bool split_once(Pair& pair) const;
  bool merges(const Pair& pair) const;
  using Halves = std::pair<TokenId, TokenId>;
  class Builder;
  friend class Merger;
  // Same contract as MergeTable::find.
  MergeTable::Entry find(TokenId left, TokenId right) const;
  std::span<const TokenId> encode_by_merging(std::string_view piece, Work& work) const;
  void add_origin(const Merge& merge);
  size_t filter_word(uint64_t hash) const { return hash >> shift_ >> 4; }
  static uint64_t filter_bit(uint64_t hash) { return uint64_t{1} << (hash & 63); }

  static constexpr int64_t kStepsPerByte = 64;

  std::array<TokenId, 256> byte_ids_{};
  std::vector<Origin> origins_;  // by id
  std::vector<uint32_t> sizes_;  // by id, in bytes; 0: its bytes do not merge into it
  // By id: the longest other token that this token begins with, and the size of that token.
  std::vector<ByteTrie::Match> shorter_;
  // Maps a pair to the token that it forms, with open addressing and at most half full. An entry is
  // id + 1; the bits above it hold part of the hash, so that most failed look-ups do not read
  // origins_.
  std::vector<uint32_t> made_;
  std::vector<uint64_t> may_merge_;  // a filter by hash: 0 for most pairs that are not in made_
  int id_bits_ = 1;
  int shift_ = 63;
  ByteTrie trie_;
};

}  // namespace limpid
