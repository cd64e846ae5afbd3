// A hash table of merges: which pairs of neighbouring symbols merge, into which symbol, and in
// which order.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Maps (left, right) to (rank, merged). Lower ranks merge first.
//
// Open addressing: an entry is stored at the slot of its hash or, if that is occupied, at the next
// free slot. A look-up stops at the first free slot. At most half of the slots are used, so a
// successful look-up reads about 1.5 slots on average (Knuth, The Art of Computer Programming 3,
// section 6.4).
class MergeTable {
 public:
  struct Entry {
    uint64_t key = kEmpty;
    uint32_t rank = kNoRank;
    TokenId merged = -1;
  };
  static constexpr uint32_t kNoRank = ~uint32_t{0};

  // Reserves room for `count` merges. The table grows if there are more.
  explicit MergeTable(size_t count);

  // Returns false and changes nothing if the pair is already in the table.
  bool insert(TokenId left, TokenId right, uint32_t rank, TokenId merged);

  // Returns the pair's entry. The rank is kNoRank if the two do not merge.
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

  void grow();

  std::vector<Entry> slots_;
  size_t count_ = 0;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace limpid
