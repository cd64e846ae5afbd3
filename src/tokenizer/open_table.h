// A hash table with open addressing, for tables of merges, of pieces, of words and of pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace limpid {

// An entry is stored at the slot of its hash or, if that is occupied, at the next free slot. A
// look-up stops at the first free slot. At most half of the slots are used, so a successful look-up
// reads about 1.5 slots on average (Knuth, The Art of Computer Programming 3, section 6.4).
//
// A Slot has is_empty(), true of Slot{}, and hash(), whose upper bits choose its place.
template <class Slot>
class OpenTable {
 public:
  // Reserves room for `count` entries. The table grows if there are more.
  explicit OpenTable(size_t count)
      : slots_(std::bit_ceil(std::max<size_t>(count, 8) * 2)),
        mask_(slots_.size() - 1),
        shift_(64 - std::countr_zero(slots_.size())) {}

  // Returns the entry with this hash that `matches(const Slot&)`, or an empty slot.
  template <class Matches>
  const Slot& find(uint64_t hash, Matches&& matches) const {
    return slots_[index_of(hash, matches)];
  }
  template <class Matches>
  Slot& find(uint64_t hash, Matches&& matches) {
    return slots_[index_of(hash, matches)];
  }
  // Returns the entry that matches, or adds `added`. Tells whether the entry is new. The pointer is
  // valid until the next entry is added.
  template <class Matches>
  std::pair<Slot*, bool> find_or_add(const Slot& added, Matches&& matches) {
    Slot* slot = &find(added.hash(), matches);
    if (!slot->is_empty()) return {slot, false};
    if (++count_ * 2 > slots_.size()) {
      reserve(slots_.size());
      slot = &find(added.hash(), matches);
    }
    *slot = added;
    return {slot, true};
  }
  // Returns false and changes nothing if an entry matches.
  template <class Matches>
  bool insert(const Slot& added, Matches&& matches) {
    return find_or_add(added, matches).second;
  }
  size_t size() const { return count_; }
  // Makes room for `count` entries, so that the table does not grow before it has more.
  void reserve(size_t count) {
    if (count * 2 <= slots_.size()) return;
    OpenTable larger(count);
    for_each([&](const Slot& slot) {
      larger.find(slot.hash(), [](const Slot&) { return false; }) = slot;
    });
    larger.count_ = count_;
    *this = std::move(larger);
  }
  // Calls visit(const Slot&) for each entry, about in the order of their hashes. So a table that is
  // filled from another one needs its room beforehand: in a small table that grows on the way, all
  // entries so far belong in the first few slots, and look-ups go through one long run of them.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (!slot.is_empty()) visit(slot);
    }
  }

 private:
  template <class Matches>
  size_t index_of(uint64_t hash, Matches&& matches) const {
    size_t i = hash >> shift_;
    while (!slots_[i].is_empty() && !matches(slots_[i])) i = (i + 1) & mask_;
    return i;
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
  size_t mask_;
  int shift_;
};

}  // namespace limpid
