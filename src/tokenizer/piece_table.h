// A hash table from byte strings to token ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tokenizer/open_table.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// The strings are stored elsewhere and must outlive the table. Strings are compared only if the
// filter has their bit and their 64-bit hashes are equal, so failed look-ups almost never read a
// string.
class PieceTable {
 public:
  // Reserves room for `count` strings. The table grows if there are more.
  explicit PieceTable(size_t count = 0) : slots_(count) {}

  // Returns false and changes nothing if the string is already in the table.
  bool insert(std::string_view bytes, TokenId id) {
    const uint32_t bit = filter_bit_of(bytes);
    filter_[bit / 64] |= uint64_t{1} << bit % 64;
    const Slot added{bytes.data(), static_cast<uint32_t>(bytes.size()), id, hash_bytes(bytes)};
    return slots_.insert(added, [&](const Slot& slot) { return slot.is(bytes, added.full_hash); });
  }
  // Returns the id, or -1.
  TokenId find(std::string_view bytes) const {
    const uint32_t bit = filter_bit_of(bytes);
    if ((filter_[bit / 64] >> bit % 64 & 1) == 0) return -1;
    const uint64_t hash = hash_bytes(bytes);
    return slots_.find(hash, [&](const Slot& slot) { return slot.is(bytes, hash); }).id;
  }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    TokenId id = -1;
    uint64_t full_hash = 0;
    bool is_empty() const { return data == nullptr; }
    uint64_t hash() const { return full_hash; }
    bool is(std::string_view bytes, uint64_t wanted) const {
      return full_hash == wanted && std::string_view(data, size) == bytes;
    }
  };
  // Selects a bit of the filter by the first, last and middle byte and the size.
  static uint32_t filter_bit_of(std::string_view bytes) {
    if (bytes.empty()) return 0;
    const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(bytes[i]); };
    const auto size = static_cast<uint32_t>(bytes.size());
    const uint32_t all = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16 | size << 24;
    return all * 0x9E3779B1U >> 18;
  }

  std::array<uint64_t, 256> filter_{};  // rejects most strings that are not in a small table
  OpenTable<Slot> slots_;
};

}  // namespace limpid
