// The work space of one encode, kept between calls so that encoding allocates nothing in the steady
// state.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/linear_bpe.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// What pieces of text became, kept for their next occurrence: most of a text is few words. A piece
// has less than 8 kWords bytes and 2 kWords ids. One cache line holds one or two pieces; the newer
// of two drives out the older.
template <size_t kWords>
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 8 * kWords - 1;
  static constexpr size_t kMaxIds = 2 * kWords - 1;
  // The bytes as they lie in memory, zeros, and in the last byte their number.
  struct Key {
    std::array<uint64_t, kWords> words;
    bool operator==(const Key& other) const {
      uint64_t difference = 0;
      for (size_t i = 0; i < kWords; ++i) difference |= words[i] ^ other.words[i];
      return difference == 0;
    }
  };
  struct Entry {
    Key key{};
    std::array<TokenId, kMaxIds + 1> ids{};  // the last is how many there are
    size_t count() const { return static_cast<size_t>(ids[kMaxIds]); }
  };

  explicit PieceCache(int bits) : lines_(size_t{1} << bits), shift_(64 - bits) {}

  // `size` from 1 to kMaxBytes; `readable`: how many bytes from p on may be read.
  static Key key_of(const char* p, size_t size, size_t readable) {
    std::array<char, 8 * kWords> bytes{};
    Key key;
    if (readable >= bytes.size()) {
      std::memcpy(&key, p, bytes.size());
      for (size_t i = 0; i < kWords; ++i) key.words[i] &= first_bytes(size, i);
    } else {
      std::memcpy(bytes.data(), p, size);
      std::memcpy(&key, bytes.data(), bytes.size());
    }
    constexpr int kLast = std::endian::native == std::endian::little ? 56 : 0;
    key.words.back() |= static_cast<uint64_t>(size) << kLast;
    return key;
  }
  // Has the memory that find will read fetched.
  void prefetch(const Key& key) const { __builtin_prefetch(&lines_[hash_of(key) >> shift_]); }
  // What is kept of that key, or nullptr.
  const Entry* find(const Key& key) const {
    const auto& line = lines_[hash_of(key) >> shift_].entries;
    const Entry& entry = line[line.back().key == key ? line.size() - 1 : 0];
    return entry.key == key ? &entry : nullptr;
  }
  // Keeps the ids, at most kMaxIds, of a key that find does not know.
  void insert(const Key& key, std::span<const TokenId> ids) {
    auto& line = lines_[hash_of(key) >> shift_].entries;
    line.back() = line.front();
    Entry& entry = line.front();
    entry.key = key;
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
    entry.ids[kMaxIds] = static_cast<TokenId>(ids.size());
  }

 private:
  struct alignas(64) Line {
    std::array<Entry, 64 / sizeof(Entry)> entries;
  };
  // Of word i those bytes that are among the first `size` of all.
  static uint64_t first_bytes(size_t size, size_t i) { return kMasks[size + 8 * (kWords - i)]; }
  static constexpr size_t kMaskCount = 16 * kWords + 1;
  static constexpr std::array<uint64_t, kMaskCount> kMasks = [] {
    std::array<uint64_t, kMaskCount> masks{};
    for (size_t i = 0; i < kMaskCount; ++i) {
      const size_t n = i < 8 * kWords ? 0 : std::min<size_t>(i - 8 * kWords, 8);
      for (size_t byte = 0; byte < n; ++byte) {
        const size_t place = std::endian::native == std::endian::little ? byte : 7 - byte;
        masks[i] |= uint64_t{0xFF} << (8 * place);
      }
    }
    return masks;
  }();
  static uint64_t hash_of(const Key& key) {
    uint64_t hash = key.words.front();
    for (size_t i = 1; i < kWords; ++i) {
      hash ^= key.words[i] * 0x9E3779B97F4A7C15ULL;
      if (i + 1 < kWords) hash = std::rotl(hash * 0x9FB21C651E98DF25ULL, 27);
    }
    return hash * 0xD6E8FEB86659FD93ULL;
  }

  std::vector<Line> lines_;
  int shift_;
};
using ShortPieceCache = PieceCache<2>;
using LongPieceCache = PieceCache<4>;

// Gathers ids before they go to a vector, a few at a time with no question of room. What was put is
// in the vector after flush().
class IdSink {
 public:
  explicit IdSink(std::vector<TokenId>& out) : out_(out) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  template <size_t kWords>
  void put(const std::array<TokenId, kWords>& ids, size_t count) {
    if (size_ + kWords > kSize) flush();
    std::memcpy(ids_.data() + size_, ids.data(), sizeof(ids));
    size_ += count;
  }
  void put(std::span<const TokenId> ids) {
    flush();
    out_.insert(out_.end(), ids.begin(), ids.end());
  }
  void flush() {
    out_.insert(out_.end(), ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ = 0;
  }

 private:
  static constexpr size_t kSize = 512;
  std::vector<TokenId>& out_;
  size_t size_ = 0;
  std::array<TokenId, kSize> ids_;
};

struct EncodeScratch {
  ShortPieceCache short_pieces{16};  // 4 MiB
  LongPieceCache long_pieces{15};    // 2 MiB
  Merger merger;
  LinearBpe::Work linear;
  std::vector<TokenId> symbols;
  std::vector<std::string_view> unknown;  // SentencePiece: characters without a symbol
  std::string text;                       // the normalized text, if it differs
  std::vector<char32_t> points;           // for its normalization
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
