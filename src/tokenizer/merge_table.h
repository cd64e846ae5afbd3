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

  // Room for `count` merges; it grows for more.
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

  void grow();

  std::vector<Entry> slots_;
  size_t count_ = 0;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace limpid
