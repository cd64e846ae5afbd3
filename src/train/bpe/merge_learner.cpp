#include "train/bpe/merge_learner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid::bpe {

MergeLearner::MergeLearner(const WordCounts& words, const std::array<uint32_t, 256>& byte_ids,
                           int64_t least_count, int64_t n_merges)
    : least_count_(std::max<int64_t>(least_count, 1)), n_merges_(std::max<int64_t>(n_merges, 1)) {
  for (const uint32_t id : byte_ids) {
    if (id >= n_bytes_.size()) n_bytes_.resize(id + 1);
    n_bytes_[id] = 1;
  }
  lay_out(words, byte_ids);
  count_pairs();
}

// Frequent words first: they are visited most often, and lie close together then.
void MergeLearner::lay_out(const WordCounts& words, const std::array<uint32_t, 256>& byte_ids) {
  const uint64_t n_slots = uint64_t{words.size()} + words.n_bytes() + 1;
  LIMPID_CHECK(ResourceError, n_slots < kInside,
               "the different words have {} bytes; at most {} can be learned from", words.n_bytes(),
               kInside);
  std::vector<std::pair<uint64_t, std::string_view>> sorted;
  sorted.reserve(words.size());
  words.for_each([&](std::string_view word, uint64_t count) {
    if (word.size() > 1) sorted.emplace_back(count, word);
  });
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  slots_.reserve(n_slots);
  slots_.push_back({kBorder, 0});
  for (const auto& [count, word] : sorted) {
    const auto weight = static_cast<int64_t>(count);
    if (weights_.empty() || weights_.back() != weight) weights_.push_back(weight);
    const auto index = static_cast<uint32_t>(weights_.size() - 1);
    for (const char c : word) slots_.push_back({byte_ids[static_cast<uint8_t>(c)], index});
    slots_.push_back({kBorder, 0});
  }
}

// Calls visit(pair, place, weight) for all pairs of adjacent tokens.
template <typename Visit>
void MergeLearner::for_each_pair(Visit&& visit) const {
  for (uint32_t place = 1; place < slots_.size();) {
    const uint32_t token = slots_[place].token;
    if (token == kBorder) {
      ++place;
      continue;
    }
    const uint32_t next = place + n_bytes_[token];
    const uint32_t after = slots_[next].token;
    if (after != kBorder) visit(TokenPair{token, after}, place, weights_[slots_[place].weight]);
    place = next;
  }
}

// Counts all pairs of the words as they are now, and lists the places of those that are frequent
// enough. The heap is empty before.
void MergeLearner::count_pairs() {
  PairTable counted;
  int64_t most = 0;
  for_each_pair([&](TokenPair pair, uint32_t, int64_t weight) {
    PairTable::Entry& entry = counted.add(pair);
    entry.count += weight;
    ++entry.size;
    most = std::max(most, entry.count);
  });
  // The counts of pairs fall about like 1 / rank. The last merge then has about this count.
  if (threshold_ == 0) threshold_ = std::max(most / n_merges_, least_count_);
  size_t n_kept = 0;
  counted.for_each([&](const PairTable::Entry& entry) { n_kept += entry.count >= threshold_; });
  pairs_ = PairTable();
  pairs_.reserve(n_kept);
  uint64_t n_places = 0;
  counted.for_each([&](const PairTable::Entry& entry) {
    if (entry.count < threshold_) return;
    pairs_.add(entry.pair) = {entry.pair, entry.count, n_places};
    n_places += entry.size;
    heap_.push({entry.pair, entry.count});
  });
  places_.assign(n_places, 0);
  for_each_pair([&](TokenPair pair, uint32_t place, int64_t) {
    if (PairTable::Entry* entry = pairs_.find(pair)) places_[entry->first + entry->size++] = place;
  });
}

std::optional<CountedPair> MergeLearner::next() {
  while (true) {
    while (!heap_.empty()) {
      const CountedPair top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_.find(top.pair)->count;
      if (count == top.count) return top;
      if (count >= threshold_) heap_.push({top.pair, count});
    }
    if (threshold_ == least_count_) return std::nullopt;
    threshold_ = std::max(threshold_ / 8, least_count_);
    count_pairs();
  }
}

// Merges one occurrence and notes what that does to the pairs beside it. For x a b y:
//   (x, a) and (b, y) lose one occurrence, (x, ab) and (ab, y) gain one.
// If x is an ab of this round, (ab, a) loses what it gained a moment ago.
void MergeLearner::merge_at(uint32_t place, TokenPair pair, uint32_t merged) {
  Slot* const slot = &slots_[place];
  const uint32_t n_left = n_bytes_[pair.left];
  if (slot->token != pair.left || slot[n_left].token != pair.right) return;
  const uint32_t size = n_bytes_[merged];
  const int64_t weight = weights_[slot->weight];
  const uint32_t before = slot[-1].token;
  const uint32_t after = slot[size].token;
  if (before != kBorder) {
    Neighbour& left = left_.gain(before, weight, place - n_bytes_[before]);
    if (before == merged) {
      right_.by_token[pair.left].gained -= weight;
    } else {
      left.lost += weight;
    }
  }
  if (after != kBorder) right_.gain(after, weight, place).lost += weight;
  slot[n_left - 1].token = kInside;
  slot[n_left].token = kInside;
  slot[0].token = merged;
  slot[size - 1].token = merged;
}

// Lowers the counts of the pairs that a round has taken away.
template <typename MakePair>
void MergeLearner::lose(Neighbours& side, MakePair make_pair) {
  for (const uint32_t token : side.seen) {
    const int64_t lost = side.by_token[token].lost;
    if (lost == 0) continue;
    PairTable::Entry* entry = pairs_.find(make_pair(token));
    if (entry != nullptr) entry->count -= lost;
  }
}

// Adds the pairs that a round has made, with their places, and forgets the round.
template <typename MakePair>
void MergeLearner::gain(Neighbours& side, MakePair make_pair) {
  constexpr uint64_t kTooRare = UINT64_MAX;
  uint64_t n_places = places_.size();
  for (const uint32_t token : side.seen) {
    Neighbour& neighbour = side.by_token[token];
    uint64_t first = kTooRare;
    if (neighbour.gained >= threshold_) {
      first = n_places;
      n_places += neighbour.n_places;
      pairs_.add(make_pair(token)) = {make_pair(token), neighbour.gained, first,
                                      neighbour.n_places};
      heap_.push({make_pair(token), neighbour.gained});
    }
    neighbour = {.cursor = first};
  }
  places_.resize(n_places);
  for (const auto& [token, place] : side.places) {
    uint64_t& cursor = side.by_token[token].cursor;
    if (cursor != kTooRare) places_[cursor++] = place;
  }
  side.seen.clear();
  side.places.clear();
}

void MergeLearner::merge(TokenPair pair, uint32_t merged) {
  if (merged >= n_bytes_.size()) n_bytes_.resize(merged + 1);
  n_bytes_[merged] = n_bytes_[pair.left] + n_bytes_[pair.right];
  left_.by_token.resize(n_bytes_.size());
  right_.by_token.resize(n_bytes_.size());
  const PairTable::Entry entry = *pairs_.find(pair);
  for (uint64_t i = entry.first; i < entry.first + entry.size; ++i)
    merge_at(places_[i], pair, merged);
  lose(left_, [&](uint32_t token) { return TokenPair{token, pair.left}; });
  lose(right_, [&](uint32_t token) { return TokenPair{pair.right, token}; });
  gain(left_, [&](uint32_t token) { return TokenPair{token, merged}; });
  gain(right_, [&](uint32_t token) { return TokenPair{merged, token}; });
  pairs_.find(pair)->count = 0;
}

}  // namespace limpid::bpe
