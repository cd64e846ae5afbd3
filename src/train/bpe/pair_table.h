// A hash table from pairs of adjacent tokens to their counts and places.
#pragma once

#include <cstdint>

#include "tokenizer/open_table.h"

namespace limpid::bpe {

// Two adjacent tokens. Pairs are ordered by the left id, then by the right id.
struct TokenPair {
  uint32_t left = 0;
  uint32_t right = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees the 0 that the compiler writes
  friend auto operator<=>(const TokenPair&, const TokenPair&) = default;
};

// Pairs are added and never removed.
class PairTable {
 public:
  struct Entry {
    TokenPair pair = kNoPair;
    int64_t count = 0;   // in the text
    uint64_t first = 0;  // places[first .. first + size) of the owner: where the pair may be
    uint32_t size = 0;

    bool is_empty() const { return pair == kNoPair; }
    // The high bits of a product depend on all bits of the factors.
    uint64_t hash() const { return (uint64_t{pair.left} << 32 | pair.right) * 0x9E3779B97F4A7C15; }
  };

  void reserve(size_t count) { entries_.reserve(count); }
  // Returns the entry, or nullptr. Valid until the next add.
  Entry* find(TokenPair pair) {
    Entry& entry = entries_.find(Entry{pair}.hash(), Is{pair});
    return entry.is_empty() ? nullptr : &entry;
  }
  // Returns the entry of the pair, which is added if it is not there yet.
  Entry& add(TokenPair pair) { return *entries_.find_or_add({pair}, Is{pair}).first; }
  // Calls visit(const Entry&) for each pair, about in the order of their hashes.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    entries_.for_each(visit);
  }

 private:
  static constexpr TokenPair kNoPair{UINT32_MAX, UINT32_MAX};
  struct Is {
    TokenPair pair;
    bool operator()(const Entry& entry) const { return entry.pair == pair; }
  };

  OpenTable<Entry> entries_{512};
};

}  // namespace limpid::bpe
