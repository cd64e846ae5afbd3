// Byte-pair encoding in time linear in the text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/merger.h"

namespace limpid {

// What merging gives, without merging. Two facts carry it, for merges in any order with the
// leftmost of equals first:
//
// - A sequence of tokens is what a text merges into if and only if each token is what its own bytes
//   merge into, and each two neighbours are what their bytes together merge into. (The merges of
//   the whole text, looked at between two boundaries that none of them crosses, are the merges of
//   that part alone; and the first merge that crossed one would cross it in the pair alone too.)
// - So every prefix of a text has one such sequence. A search from the left that takes the longest
//   token, and a shorter one where neighbours do not fit, comes to each position once.
//
// Whether two neighbours fit is read off the merges that made them, latest first. The idea is that
// of the `bpe` crate in GitHub's rust-gems; here a token may be made in many ways, ids say nothing
// of the order, and a merge may rank before one that made its parts (docs/tokenizers.md).
class LinearBpe {
 public:
  struct Merge {
    TokenId left, right;
    uint32_t rank;
    TokenId merged;
    uint32_t size;  // of the merged token, in bytes
  };
  struct Token {
    std::string_view bytes;
    TokenId id;
  };
  // What the search needs besides; one per thread, and of one LinearBpe.
  class Work {
   public:
    Work() : fits_(size_t{1} << kBits) {}

   private:
    friend class LinearBpe;
    static constexpr int kBits = 16;
    // Whether two tokens fit, direct-mapped.
    std::vector<uint32_t> fits_;
    std::vector<uint64_t> dead_;  // a bit for each position that no token sequence goes through
    std::vector<TokenId> tokens_;
    int64_t steps_left_ = 0;  // of the search; then merging takes its place
    Merger merger_;
  };

  LinearBpe() = default;
  // `merges` in any order, no pair twice. `byte_ids` are -1 for bytes without a token. Throws
  // UnsupportedError for 2^23 ids and more. Takes n log n for the bytes of the tokens.
  LinearBpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges);
  // Every two tokens that are a token together merge, by rank of its id. No two `tokens` have the
  // same bytes.
  LinearBpe(const std::array<TokenId, 256>& byte_ids, std::vector<Token> tokens);

  // Whether the bytes of the token merge into it.
  bool stands_alone(TokenId id) const {
    return static_cast<size_t>(id) < sizes_.size() && sizes_[static_cast<size_t>(id)] != 0;
  }
  // The tokens of `piece`, valid until the next call with `work`; none if a byte has no token. Time
  // is linear in the piece for the vocabularies that training makes. A vocabulary can be made so
  // that the search reads far ahead at each place, or tries many tokens there; the search ends
  // after a number of steps in proportion to the piece, and merging gives the same tokens in
  // n log n.
  std::span<const TokenId> encode(std::string_view piece, Work& work) const;

 private:
  // The merge that makes a token of its bytes. (Another that gives the same token is never used.)
  struct Origin {
    TokenId left = -1, right = -1;  // -1: a byte
    // When, as merging goes: the highest rank until then, and 1; 0 for a byte. A merge that ranks
    // before one that made its parts follows that at once.
    uint32_t time = 0;
    uint32_t rank : 30 = 0;
    uint32_t follows_left : 1 = 0;   // it follows at once upon the merge that makes its left part
    uint32_t follows_right : 1 = 0;  // or its right part
  };
  // Two tokens that lie at a boundary, and the ranks that end them: when they merge away from it.
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
  class Builder;
  friend class Merger;
  // As MergeTable::find.
  MergeTable::Entry find(TokenId left, TokenId right) const;
  std::span<const TokenId> encode_by_merging(std::string_view piece, Work& work) const;
  void add_origin(const Merge& merge);
  size_t filter_word(uint64_t hash) const { return hash >> shift_ >> 4; }
  static uint64_t filter_bit(uint64_t hash) { return uint64_t{1} << (hash & 63); }

  static constexpr int64_t kStepsPerByte = 64;

  std::array<TokenId, 256> byte_ids_{};
  std::vector<Origin> origins_;  // by id
  std::vector<uint32_t> sizes_;  // by id, in bytes; 0: its bytes do not merge into it
  // By id: the longest token that it begins with, itself apart, and that one's size.
  std::vector<ByteTrie::Match> shorter_;
  // Pair -> what it makes, open addressing, at most half full: id + 1, and above it bits of the
  // hash so that what is not there is seldom looked at in origins_.
  std::vector<uint32_t> made_;
  std::vector<uint64_t> may_merge_;  // bits by hash: clear for most pairs that are not in made_
  int id_bits_ = 1;
  int shift_ = 63;
  ByteTrie trie_;
};

}  // namespace limpid
