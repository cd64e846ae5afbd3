#include "train/bpe/word_counts.h"

#include <cstring>

namespace limpid::bpe {
namespace {

constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio

template <typename Word>
uint64_t load(const char* p) {
  Word word{};
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Multiplication carries differences of low bits upwards; the shift brings them back down.
uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kOdd;
  return hash ^ (hash >> 32);
}

}  // namespace

// Reads eight bytes at a time. The last read of a word of 4 bytes or more overlaps the one before
// it, so that no loop over single bytes is needed.
uint64_t WordCounts::hash_of(std::string_view word) {
  const char* p = word.data();
  size_t n = word.size();
  uint64_t hash = n * kOdd;
  for (; n > 8; p += 8, n -= 8) hash = mix(hash, load<uint64_t>(p));
  uint64_t rest = 0;
  if (n >= 4) {
    rest = load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4);
  } else if (n > 0) {
    rest = load<uint8_t>(p) << 16 | load<uint8_t>(p + n / 2) << 8 | load<uint8_t>(p + n - 1);
  }
  return mix(mix(hash, rest), n);
}

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
