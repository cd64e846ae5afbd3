// What is known of each pair of adjacent tokens, by pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace limpid::bpe {

// Two adjacent tokens. Pairs are ordered by the left id, then by the right id.
struct TokenPair {
  uint32_t left = 0;
  uint32_t right = 0;
  friend auto operator<=>(const TokenPair&, const TokenPair&) = default;
};

// A hash table with linear probing. Pairs are added and never removed.
class PairTable {
 public:
  struct Entry {
    TokenPair pair = kNoPair;
    int64_t count = 0;   // in the text
    uint64_t first = 0;  // places[first .. first + size) of the owner: where the pair may be
    uint32_t size = 0;
  };

  // Returns the entry, or nullptr. Valid until the next add.
  Entry* find(TokenPair pair) {
    Entry& entry = place_of(pair);
    return entry.pair == pair ? &entry : nullptr;
  }
  // Returns the entry of the pair, which is added if it is not there yet.
  Entry& add(TokenPair pair) {
    Entry* entry = &place_of(pair);
    if (entry->pair == pair) return *entry;
    if (++n_pairs_ * 2 > entries_.size()) {
      grow();
      entry = &place_of(pair);
    }
    entry->pair = pair;
    return *entry;
  }
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (Entry& entry : entries_) {
      if (entry.pair != kNoPair) visit(entry);
    }
  }

 private:
  static constexpr TokenPair kNoPair{UINT32_MAX, UINT32_MAX};

  Entry& place_of(TokenPair pair) {
    const uint64_t key = uint64_t{pair.left} << 32 | pair.right;
    const size_t mask = entries_.size() - 1;
    // The high bits of a product depend on all bits of the key.
    for (size_t i = (key * 0x9E3779B97F4A7C15) >> 32 & mask;; i = (i + 1) & mask) {
      Entry& entry = entries_[i];
      if (entry.pair == pair || entry.pair == kNoPair) return entry;
    }
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.pair != kNoPair) place_of(entry.pair) = entry;
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1024);  // a power of two, at most half full
  size_t n_pairs_ = 0;
};

}  // namespace limpid::bpe
