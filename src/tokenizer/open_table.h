// A hash table with open addressing, for tables of merges, of pieces, of words and of pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace limpid {

// A hash of a byte string. Reads eight bytes at a time. The last read of 4 bytes or more overlaps
// the one before it, so that no loop over single bytes is needed.
inline uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  const auto load = [](auto word, const char* p) -> uint64_t {
    std::memcpy(&word, p, sizeof(word));
    return word;
  };
  // Multiplication carries differences of low bits upwards; the shift brings them back down.
  const auto mix = [](uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * kOdd;
    return hash ^ (hash >> 32);
  };
  const char* p = bytes.data();
  size_t n = bytes.size();
  uint64_t hash = n * kOdd;
  for (; n > 8; p += 8, n -= 8) hash = mix(hash, load(uint64_t{}, p));
  uint64_t rest = 0;
  if (n >= 4) {
    rest = load(uint32_t{}, p) << 32 | load(uint32_t{}, p + n - 4);
  } else if (n > 0) {
    rest = load(uint8_t{}, p) << 16 | load(uint8_t{}, p + n / 2) << 8 | load(uint8_t{}, p + n - 1);
  }
  return mix(mix(hash, rest), n);
}

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
