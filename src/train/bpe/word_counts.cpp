#include "train/bpe/word_counts.h"

namespace limpid::bpe {

void WordCounts::add(std::string_view word, uint64_t hash, uint64_t times) {
  n_words_ += times;
  const auto [entry, is_new] = entries_.find_or_add(
      {hash, times, bytes_.size(), word.size()},
      [&](const Entry& known) { return known.full_hash == hash && word_of(known) == word; });
  if (is_new) {
    bytes_.insert(bytes_.end(), word.begin(), word.end());
  } else {
    entry->count += times;
  }
}

void WordCounts::add_all(const WordCounts& other) {
  entries_.reserve(other.size());
  other.entries_.for_each(
      [&](const Entry& entry) { add(other.word_of(entry), entry.full_hash, entry.count); });
}

}  // namespace limpid::bpe
