// Which two neighbouring symbols merge, into what, and in which order.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// (left, right) -> (rank, merged); lower ranks merge first. Open addressing, at most half full.
class MergeTable {
 public:
  struct Entry {
    uint64_t key = kEmpty;
    uint32_t rank = kNoRank;
    TokenId merged = -1;
  };
  static constexpr uint32_t kNoRank = ~uint32_t{0};

  // Room for `count` merges.
  explicit MergeTable(size_t count);

  // False, and no change, if the pair is there already.
  bool insert(TokenId left, TokenId right, uint32_t rank, TokenId merged);

  // The pair's entry; rank kNoRank when the two do not merge.
  const Entry& find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    size_t slot = slot_of(key);
    while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask_;
    return slots_[slot];
  }

 private:
  static constexpr uint64_t kEmpty =
      ~uint64_t{0};  // ids are never negative, so no pair has this key
  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ULL) >> shift_; }

  std::vector<Entry> slots_;
  size_t mask_ = 0;
  int shift_ = 0;
};

// Merges symbols until no pair is left that merges: always the pair of lowest rank, the leftmost of
// equals, which is what "apply the merges in order" means (Sennrich et al. 2016, arXiv:1508.07909,
// algorithm 1). Short inputs search linearly; long ones keep a heap, n log n. Holds its work space;
// one per thread.
class Merger {
 public:
  // Replaces `symbols` by what they merge into. Fewer than 2^31 symbols.
  void merge(const MergeTable& table, std::vector<TokenId>& symbols);

 private:
  void merge_short(const MergeTable& table, std::vector<TokenId>& symbols);
  void merge_long(const MergeTable& table, std::vector<TokenId>& symbols);

  std::vector<int32_t> previous_, next_;
  std::vector<uint32_t> ranks_;  // of (symbol, its right neighbour)
  std::vector<TokenId> merged_;  // what they merge into
  std::vector<uint64_t> queue_;  // rank << 32 | position: a min-heap by rank, then position
};

}  // namespace limpid
