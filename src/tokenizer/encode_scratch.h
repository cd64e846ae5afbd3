// The work space of one encode, kept between calls so that encoding allocates nothing in the steady
// state.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// What pieces of text became, kept for their next occurrence: most of a text is few words.
// Direct-mapped; only pieces of at most 15 bytes and 3 ids are kept.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 15;
  static constexpr size_t kMaxIds = 3;
  struct Key {
    uint64_t low = 0, high = 0;  // 15 bytes and the length
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::array<TokenId, kMaxIds> ids{};
    uint32_t count = 0;
  };

  PieceCache() : entries_(kSize) {}

  // `size` from 1 to 15; `readable`: how many bytes from p on may be read.
  static Key key_of(const char* p, size_t size, size_t readable) {
    Key key;
    if (readable >= 16) {
      std::memcpy(&key, p, 16);
    } else {
      std::array<char, 16> bytes{};
      std::memcpy(bytes.data(), p, size);
      std::memcpy(&key, bytes.data(), 16);
    }
    const unsigned bits = static_cast<unsigned>(size) * 8;
    if (bits < 64) {
      key.low &= (uint64_t{1} << bits) - 1;
      key.high = 0;
    } else {
      key.high &= (uint64_t{1} << (bits - 64)) - 1;
    }
    key.high |= static_cast<uint64_t>(size) << 56;
    return key;
  }
  // Where that key is, if it is there at all.
  Entry& slot(const Key& key) {
    const uint64_t hash = (key.low ^ (key.high * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
    return entries_[hash >> (64 - kBits)];
  }
  static void fill(Entry& entry, const Key& key, const TokenId* ids, size_t count) {
    if (count > kMaxIds) return;
    entry.key = key;
    entry.count = static_cast<uint32_t>(count);
    for (size_t i = 0; i < count; ++i) entry.ids[i] = ids[i];
  }

 private:
  static constexpr int kBits = 16;
  static constexpr size_t kSize = size_t{1} << kBits;  // 2 MiB
  std::vector<Entry> entries_;
};

struct EncodeScratch {
  PieceCache cache;
  Merger merger;
  std::vector<TokenId> symbols;
  std::vector<std::string_view> unknown;  // SentencePiece: characters without a symbol
  std::string text;                       // the normalized text, if it differs
  std::string word;
  std::string normalized;  // a stretch in which normalized special tokens are looked for
};

// Scratch spaces of one tokenizer, one per encode that is under way. A cache belongs to its
// tokenizer.
class ScratchPool {
 public:
  class Lease {
   public:
    Lease(ScratchPool& pool, std::unique_ptr<EncodeScratch> scratch)
        : pool_(pool), scratch_(std::move(scratch)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      // At most a few are kept; a burst of threads leaves no memory behind.
      if (pool_.idle_.size() < pool_.idle_.capacity()) pool_.idle_.push_back(std::move(scratch_));
    }
    EncodeScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<EncodeScratch> scratch_;
  };

  ScratchPool() { idle_.reserve(16); }
  Lease acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto scratch = std::move(idle_.back());
        idle_.pop_back();
        return {*this, std::move(scratch)};
      }
    }
    return {*this, std::make_unique<EncodeScratch>()};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> idle_;
};

}  // namespace limpid
