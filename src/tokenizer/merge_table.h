// A hash table of merges: which pairs of neighbouring symbols merge, into which symbol, and in
// which order.
#pragma once

#include <cstdint>

#include "tokenizer/open_table.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Maps (left, right) to (rank, merged). Lower ranks merge first.
class MergeTable {
 public:
  static constexpr uint32_t kNoRank = ~uint32_t{0};
  struct Entry {
    uint64_t key = kEmpty;
    uint32_t rank = kNoRank;
    TokenId merged = -1;
    bool is_empty() const { return key == kEmpty; }
    uint64_t hash() const { return key * 0x9E3779B97F4A7C15ULL; }
  };

  // Reserves room for `count` merges. The table grows if there are more.
  explicit MergeTable(size_t count) : entries_(count) {}

  // Returns false and changes nothing if the pair is already in the table.
  bool insert(TokenId left, TokenId right, uint32_t rank, TokenId merged) {
    const Entry added{key_of(left, right), rank, merged};
    return entries_.insert(added, [&](const Entry& entry) { return entry.key == added.key; });
  }
  // Returns the pair's entry. The rank is kNoRank if the two do not merge.
  const Entry& find(TokenId left, TokenId right) const {
    const Entry wanted{key_of(left, right)};
    return entries_.find(wanted.hash(),
                         [&](const Entry& entry) { return entry.key == wanted.key; });
  }

 private:
  // Ids are never negative, so no pair has this key.
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  OpenTable<Entry> entries_;
};

}  // namespace limpid
