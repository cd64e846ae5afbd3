#include "tokenizer/piece_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace limpid {

PieceTable::PieceTable(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(count, 4) * 2);
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

bool PieceTable::insert(std::string_view bytes, TokenId id) {
  const uint64_t hash = hash_bytes(bytes.data(), bytes.size());
  size_t slot = hash >> shift_;
  while (slots_[slot].data != nullptr) {
    const Slot& s = slots_[slot];
    if (s.hash == hash && std::string_view(s.data, s.size) == bytes) return false;
    slot = (slot + 1) & mask_;
  }
  const uint32_t bit = filter_bit_of(bytes);
  filter_[bit / 64] |= uint64_t{1} << bit % 64;
  slots_[slot] = {bytes.data(), static_cast<uint32_t>(bytes.size()), id, hash};
  if (++count_ * 2 > slots_.size()) grow();
  return true;
}

void PieceTable::grow() {
  PieceTable larger(slots_.size());
  for (const Slot& old : slots_) {
    if (old.data == nullptr) continue;
    size_t slot = old.hash >> larger.shift_;
    while (larger.slots_[slot].data != nullptr) slot = (slot + 1) & larger.mask_;
    larger.slots_[slot] = old;
  }
  larger.filter_ = filter_;
  larger.count_ = count_;
  *this = std::move(larger);
}

TokenId PieceTable::find(std::string_view bytes) const {
  if (!may_have(bytes)) return -1;
  const uint64_t hash = hash_bytes(bytes.data(), bytes.size());
  size_t slot = hash >> shift_;
  while (slots_[slot].data != nullptr) {
    const Slot& s = slots_[slot];
    if (s.hash == hash && std::string_view(s.data, s.size) == bytes) return s.id;
    slot = (slot + 1) & mask_;
  }
  return -1;
}

}  // namespace limpid
