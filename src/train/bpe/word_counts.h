// How often each word of a text occurs. BPE learns from these counts alone: a word that occurs a
// thousand times is stored and merged once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/open_table.h"

namespace limpid::bpe {

// A hash table from words to counts. The bytes of all words lie one after another in one buffer, so
// a new word needs no allocation of its own. Example after "the cat the":
//   bytes    "the cat"              entry of "the":  first 0, size 3, count 2
//                                   entry of " cat": first 3, size 4, count 1
class WordCounts {
 public:
  // Counts `word` `times` times more.
  void add(std::string_view word, uint64_t times = 1) { add(word, hash_bytes(word), times); }
  void add_all(const WordCounts& other);

  uint64_t n_words() const { return n_words_; }     // repeated words too
  size_t size() const { return entries_.size(); }   // different words
  size_t n_bytes() const { return bytes_.size(); }  // of the different words together
  // Calls visit(std::string_view word, uint64_t count) for each word, in no particular order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    entries_.for_each([&](const Entry& entry) { visit(word_of(entry), entry.count); });
  }

 private:
  struct Entry {
    uint64_t full_hash = 0;
    uint64_t count = 0;  // 0: the entry is free
    size_t first = 0;    // the word is bytes_[first .. first + size)
    size_t size = 0;
    bool is_empty() const { return count == 0; }
    uint64_t hash() const { return full_hash; }
  };
  void add(std::string_view word, uint64_t hash, uint64_t times);
  std::string_view word_of(const Entry& entry) const {
    return {bytes_.data() + entry.first, entry.size};
  }

  OpenTable<Entry> entries_{512};
  std::vector<char> bytes_;
  uint64_t n_words_ = 0;
};

}  // namespace limpid::bpe
