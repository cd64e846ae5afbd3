// Finds the most frequent pair of adjacent tokens in counted words, and merges it everywhere, again
// and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909, algorithm 1).
//
// The time of a merge depends on how often its pair occurs in different words, and not on the size
// of the text, because of three structures.
//
// 1. Slots. All different words lie in one array, a slot for each byte, with a border between
//    words. A token of n bytes has n slots; the first and the last have its id, those between are
//    kInside. So the tokens beside a token are found without links. The word "lower" with tokens
//    for "low" (300) and "er" (301):
//
//      slot     7        8     9      10    11     12     13
//      token    border   300   inside 300   301    301    border
//
//    The token at slot 8 is 300, which has 3 bytes, so the next token begins in slot 11; the token
//    before slot 11 ends in slot 10. Every slot also knows how often its word occurs.
//
// 2. Places. Each pair has the list of the slots where it may begin, in ascending order. All
//    occurrences of a pair arise in one round: the round that made the younger of its tokens. So a
//    list is written once. It is never updated: a place whose tokens have changed since is
//    recognized and skipped.
//
// 3. A heap with the pairs and their counts. After a pair has arisen, its count can only fall. When
//    a pair comes to the top with an outdated count, it goes back with its present count (lazy
//    deletion).
//
// Most pairs are rare and never merge. Pairs below a threshold are therefore not stored at all. If
// the heap becomes empty, the threshold falls, and the pairs are counted again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "train/bpe/pair_table.h"
#include "train/bpe/word_counts.h"

namespace limpid::bpe {

// A pair that was learned, and how often it occurred in the text then.
struct CountedPair {
  TokenPair pair;
  int64_t count = 0;
  // Of two pairs that are as frequent, the smaller one is learned first.
  bool operator<(const CountedPair& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class MergeLearner {
 public:
  // `byte_ids` has the token of each byte. Pairs that occur less often than `least_count` (at least
  // 1) are never returned. `n_merges` is about how many merges will be asked for; it decides the
  // first threshold. Throws ResourceError for more than about 4 * 10^9 bytes of different words.
  MergeLearner(const WordCounts& words, const std::array<uint32_t, 256>& byte_ids,
               int64_t least_count, int64_t n_merges);

  // Returns the most frequent pair, the smallest of several, or nothing if every pair is too rare.
  // Overlapping occurrences count: "aaa" has (a, a) twice. The caller merges the pair before it
  // asks again.
  std::optional<CountedPair> next();

  // Replaces `pair` by the token `merged` everywhere, from left to right in every word. `merged` is
  // in no word yet.
  void merge(TokenPair pair, uint32_t merged);

 private:
  struct Slot {
    uint32_t token;
    uint32_t weight;  // index into weights_
  };
  // What one round does to the pairs of the merged pair with one other token beside it.
  struct Neighbour {
    int64_t gained = 0;     // count of the pair with the merged token
    int64_t lost = 0;       // of the pair with the token that it replaces
    uint32_t n_places = 0;  // of the new pair
    uint64_t cursor = 0;    // where the next of these places is written
  };
  // The other tokens on one side of the merged pair.
  struct Neighbours {
    std::vector<Neighbour> by_token;                    // all zero between rounds, but for `cursor`
    std::vector<uint32_t> seen;                         // in the order of discovery
    std::vector<std::pair<uint32_t, uint32_t>> places;  // token, place of the new pair

    Neighbour& gain(uint32_t token, int64_t weight, uint32_t place) {
      Neighbour& neighbour = by_token[token];
      if (neighbour.n_places++ == 0) seen.push_back(token);
      neighbour.gained += weight;
      places.emplace_back(token, place);
      return neighbour;
    }
  };

  void lay_out(const WordCounts& words, const std::array<uint32_t, 256>& byte_ids);
  void count_pairs();
  template <typename Visit>
  void for_each_pair(Visit&& visit) const;
  void merge_at(uint32_t place, TokenPair pair, uint32_t merged);
  template <typename MakePair>
  void lose(Neighbours& side, MakePair make_pair);
  template <typename MakePair>
  void gain(Neighbours& side, MakePair make_pair);

  static constexpr uint32_t kBorder = UINT32_MAX;
  static constexpr uint32_t kInside = UINT32_MAX - 1;

  int64_t least_count_;
  int64_t n_merges_;
  // Pairs that occur less often are not in pairs_. 0 before the first count.
  int64_t threshold_ = 0;
  std::vector<Slot> slots_;
  std::vector<int64_t> weights_;   // the different counts of words
  std::vector<uint32_t> n_bytes_;  // by token
  std::vector<uint32_t> places_;   // the lists of all pairs
  PairTable pairs_;
  std::priority_queue<CountedPair> heap_;
  Neighbours left_, right_;
};

}  // namespace limpid::bpe
