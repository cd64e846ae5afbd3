#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace limpid {

MergeTable::MergeTable(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(count, 8) * 2);
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

bool MergeTable::insert(TokenId left, TokenId right, uint32_t rank, TokenId merged) {
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].key != kEmpty) {
    if (slots_[slot].key == key) return false;
    slot = (slot + 1) & mask_;
  }
  slots_[slot] = {key, rank, merged};
  if (++count_ * 2 > slots_.size()) grow();
  return true;
}

void MergeTable::grow() {
  MergeTable larger(slots_.size());
  for (const Entry& entry : slots_) {
    if (entry.key == kEmpty) continue;
    size_t slot = larger.slot_of(entry.key);
    while (larger.slots_[slot].key != kEmpty) slot = (slot + 1) & larger.mask_;
    larger.slots_[slot] = entry;
  }
  larger.count_ = count_;
  *this = std::move(larger);
}

}  // namespace limpid
