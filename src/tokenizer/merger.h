// Byte-pair encoding by merging: the definition, against which linear_bpe.h is the fast method.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tokenizer/merge_table.h"

namespace limpid {

// Repeatedly merges the neighbouring pair of lowest rank, the leftmost among equals, until no pair
// merges (Sennrich et al. 2016, arXiv:1508.07909, algorithm 1: "apply the merges in order"). Short
// inputs search for the lowest rank linearly; long inputs keep a heap, O(n log n). The object holds
// its working memory; use one per thread.
//
// Example with the merges "l o" (0), "lo w" (1), "e r" (2):
//   l o w e r -> lo w e r -> low e r -> low er
class Merger {
 public:
  // Replaces `symbols` (fewer than 2^31) by the result of merging them. `table.find(left, right)`
  // returns their `rank` and the symbol `merged`, like MergeTable::find.
  template <class Table>
  void merge(const Table& table, std::vector<TokenId>& symbols);

 private:
  template <class Table>
  void merge_short(const Table& table, std::vector<TokenId>& symbols);
  template <class Table>
  void merge_long(const Table& table, std::vector<TokenId>& symbols);

  std::vector<int32_t> previous_, next_;
  std::vector<uint32_t> ranks_;  // of (symbol, its right neighbour)
  std::vector<TokenId> merged_;  // what they merge into
  std::vector<uint64_t> queue_;  // rank << 32 | position: a min-heap by rank, then position
};

template <class Table>
void Merger::merge(const Table& table, std::vector<TokenId>& symbols) {
  constexpr size_t kLong = 64;  // above this length the heap is faster than the quadratic search
  if (symbols.size() < 2) return;
  if (symbols.size() < kLong) {
    merge_short(table, symbols);
  } else {
    merge_long(table, symbols);
  }
}

// Finds the pair of lowest rank by a linear search over ranks_ and closes the gap by moving the
// rest. That takes O(n^2), but for short inputs it is faster than a heap, because the arrays are
// small and the search is vectorized. std::min_element returns the first minimum, which is the
// leftmost pair.
template <class Table>
void Merger::merge_short(const Table& table, std::vector<TokenId>& symbols) {
  size_t pairs = symbols.size() - 1;
  ranks_.resize(pairs);
  merged_.resize(pairs);
  const auto look_up = [&](size_t i) {
    const auto& entry = table.find(symbols[i], symbols[i + 1]);
    ranks_[i] = entry.rank;
    merged_[i] = entry.merged;
  };
  for (size_t i = 0; i < pairs; ++i) look_up(i);
  while (pairs > 0) {
    const auto first = ranks_.begin();
    const auto best = std::min_element(first, first + static_cast<std::ptrdiff_t>(pairs));
    if (*best == MergeTable::kNoRank) break;
    const auto i = static_cast<size_t>(best - first);
    symbols[i] = merged_[i];
    // Remove the right symbol of the merged pair and the pair (i, i + 1).
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(pairs) + 1,
              symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    std::copy(best + 1, first + static_cast<std::ptrdiff_t>(pairs), best);
    const auto merged = merged_.begin() + static_cast<std::ptrdiff_t>(i);
    std::copy(merged + 1, merged_.begin() + static_cast<std::ptrdiff_t>(pairs), merged);
    --pairs;
    if (i > 0) look_up(i - 1);
    if (i < pairs) look_up(i);
  }
  symbols.resize(pairs + 1);
}

// Keeps the symbols in a doubly linked list (previous_, next_) over the original positions, and the
// pairs in a heap by (rank, position), so that equal ranks give the leftmost pair first. A merge
// changes the ranks of the two neighbouring pairs; their old heap entries stay and are skipped when
// they come out, because their rank differs from ranks_.
template <class Table>
void Merger::merge_long(const Table& table, std::vector<TokenId>& symbols) {
  const auto count = static_cast<int32_t>(symbols.size());
  previous_.resize(symbols.size());
  next_.resize(symbols.size());
  ranks_.resize(symbols.size());
  merged_.resize(symbols.size());
  queue_.clear();
  const auto look_up = [&](int32_t i) {
    const int32_t right = next_[i];
    ranks_[i] = MergeTable::kNoRank;
    if (right < 0) return false;
    const auto& entry = table.find(symbols[i], symbols[right]);
    ranks_[i] = entry.rank;
    merged_[i] = entry.merged;
    return entry.rank != MergeTable::kNoRank;
  };
  const auto queued = [&](int32_t i) {
    return static_cast<uint64_t>(ranks_[i]) << 32 | static_cast<uint32_t>(i);
  };
  for (int32_t i = 0; i < count; ++i) {
    previous_[i] = i - 1;
    next_[i] = i + 1 < count ? i + 1 : -1;
    if (look_up(i)) queue_.push_back(queued(i));
  }
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
  const auto push = [&](int32_t i) {
    if (i < 0 || !look_up(i)) return;
    queue_.push_back(queued(i));
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  };
  while (!queue_.empty()) {
    const uint64_t top = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    const auto i = static_cast<int32_t>(top & 0xFFFFFFFFU);
    if (ranks_[i] != top >> 32) continue;  // out of date: a neighbour has merged
    const int32_t right = next_[i];
    symbols[i] = merged_[i];
    ranks_[right] = MergeTable::kNoRank;
    next_[i] = next_[right];
    if (next_[i] >= 0) previous_[next_[i]] = i;
    push(previous_[i]);
    push(i);
  }
  size_t size = 0;
  for (int32_t i = 0; i >= 0; i = next_[i]) symbols[size++] = symbols[i];
  symbols.resize(size);
}

}  // namespace limpid
