// Remembers the ids of recent pieces. Most of a text consists of few different words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Holds pieces of less than 8 kWords bytes with at most 3 kWords ids. A piece can be in one of two
// adjacent cache lines, which hold one or two pieces each. A new piece goes into the second line,
// where the next new piece may replace it. If it is found there, it moves to the first line. Words
// that occur once therefore do not displace frequent words. The system provides memory only when it
// is first written.
template <size_t kWords>
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 8 * kWords - 1;
  static constexpr size_t kMaxIds = 3 * kWords;
  // The bytes of the piece, then zeros; the last byte is the number of bytes.
  struct Key {
    std::array<uint64_t, kWords> words;
    bool operator==(const Key& other) const {
      uint64_t difference = 0;
      for (size_t i = 0; i < kWords; ++i) difference |= words[i] ^ other.words[i];
      return difference == 0;
    }
  };
  static constexpr Key kNoKey = [] {  // of no piece
    Key key{};
    key.words.back() = ~uint64_t{0};
    return key;
  }();
  class Entry {
   public:
    const Key& key() const { return key_; }
    size_t count() const { return packed_.front() >> kCountShift; }
    // Writes kMaxIds ids, of which the first count() are valid.
    void unpack(TokenId* out) const {
      for (const uint64_t three : packed_) {
        *out++ = static_cast<TokenId>(three & (kIdEnd - 1));
        *out++ = static_cast<TokenId>(three >> kIdBits & (kIdEnd - 1));
        *out++ = static_cast<TokenId>(three >> 2 * kIdBits & (kIdEnd - 1));
      }
    }

   private:
    friend class PieceCache;
    Entry(const Key& key, const std::array<uint64_t, kWords>& packed)
        : key_(key), packed_(packed) {}
    bool is_empty() const { return key_.words.back() == 0; }  // no key has size 0

    Key key_;
    std::array<uint64_t, kWords> packed_;  // three ids each; the first has the count above them
  };

  // 2^bits pairs of cache lines, 128 bytes each; bits >= 0.
  explicit PieceCache(int bits)
      : memory_(std::calloc((size_t{1} << bits) + 1, sizeof(Set))), shift_(63 - bits) {
    if (memory_ == nullptr) throw std::bad_alloc();
    void* begin = memory_.get();
    size_t size = ((size_t{1} << bits) + 1) * sizeof(Set);
    sets_ = static_cast<Set*>(std::align(alignof(Set), sizeof(Set), begin, size));
  }

  // `size` is from 1 to kMaxBytes; `readable` is the number of bytes that may be read from p on.
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
    key.words.back() |= static_cast<uint64_t>(size) << 56;
    return key;
  }
  // Prefetches the memory that find_near reads and the memory that find reads in addition.
  void prefetch_near(const Key& key) const { __builtin_prefetch(&set_of(key).near); }
  void prefetch_far(const Key& key) const { __builtin_prefetch(&set_of(key).far); }
  // Returns the entry of the key in the first line, or nullptr.
  const Entry* find_near(const Key& key) const {
    const Line& line = set_of(key).near;
    const Entry& entry = line[line.back().key_ == key ? line.size() - 1 : 0];
    return entry.key_ == key ? &entry : nullptr;
  }
  // Returns the entry of the key, or nullptr. Valid until the next call, because entries can move.
  const Entry* find(const Key& key) {
    Set& set = set_of(key);
    for (size_t i = 0; i < set.near.size(); ++i) {
      if (set.near[i].key_ == key) return &set.near[i];
      if (set.far[i].key_ == key) {
        std::swap(set.near[i], set.far[i]);
        return &set.near[i];
      }
    }
    return nullptr;
  }
  // Stores the ids of a key that find does not know, if the ids are few and small enough. A new
  // entry takes a free place in the first line, or replaces the oldest entry of the second line.
  void insert(const Key& key, std::span<const TokenId> ids) {
    if (ids.size() > kMaxIds) return;
    Entry entry(key, {});
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<uint64_t>(ids[i]);
      if (id >= kIdEnd) return;
      entry.packed_[i / 3] |= id << (i % 3 * kIdBits);
    }
    entry.packed_.front() |= static_cast<uint64_t>(ids.size()) << kCountShift;
    Set& set = set_of(key);
    for (Entry& near : set.near) {
      if (near.is_empty()) {
        near = entry;
        return;
      }
    }
    std::copy_backward(set.far.begin(), set.far.end() - 1, set.far.end());
    set.far.front() = entry;
  }

 private:
  static constexpr int kIdBits = 20;
  static constexpr int kCountShift = 3 * kIdBits;
  static constexpr uint64_t kIdEnd = uint64_t{1} << kIdBits;
  static_assert(kMaxIds < 16, "the count has four bits");
  using Line = std::array<Entry, 64 / sizeof(Entry)>;
  struct alignas(128) Set {
    Line near, far;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  // Returns a mask for the bytes of word i that are among the first `size` bytes of the key.
  static uint64_t first_bytes(size_t size, size_t i) { return kMasks[size + 8 * (kWords - i)]; }
  static constexpr size_t kMaskCount = 16 * kWords + 1;
  static constexpr std::array<uint64_t, kMaskCount> kMasks = [] {
    std::array<uint64_t, kMaskCount> masks{};
    for (size_t i = 0; i < kMaskCount; ++i) {
      const size_t n = i < 8 * kWords ? 0 : std::min<size_t>(i - 8 * kWords, 8);
      for (size_t byte = 0; byte < n; ++byte) masks[i] |= uint64_t{0xFF} << (8 * byte);
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
  Set& set_of(const Key& key) const { return sets_[hash_of(key) >> 1 >> shift_]; }

  std::unique_ptr<void, Free> memory_;
  Set* sets_;  // in memory_, all zero at first
  int shift_;
};
using ShortPieceCache = PieceCache<2>;
using LongPieceCache = PieceCache<4>;

// The caches of one thread.
struct PieceCaches {
  ShortPieceCache short_pieces{16};  // 8 MiB at most
  LongPieceCache long_pieces{15};    // 4 MiB at most
};

// A look-up in a table of several MiB often waits for main memory. Collecting a batch first and
// prefetching all of its cache lines lets these waits overlap.
class PieceBatch {
 public:
  struct Piece {
    std::string_view text;
    const ShortPieceCache::Entry* entry;  // the entry that look_up found, or nullptr
    ShortPieceCache::Key key;             // if the piece is short enough
    bool is_known() const { return entry != nullptr && entry->key() == key; }
  };

  // `text_end` is the end of the text that contains all pieces.
  PieceBatch(PieceCaches& caches, const char* text_end) : caches_(caches), text_end_(text_end) {}

  bool is_full() const { return size_ == pieces_.size(); }
  void add(const char* p, size_t size) {
    Piece& piece = pieces_[size_++];
    piece.text = {p, size};
    if (size <= ShortPieceCache::kMaxBytes) {
      piece.key = ShortPieceCache::key_of(p, size, static_cast<size_t>(text_end_ - p));
      caches_.short_pieces.prefetch_near(piece.key);
    } else {
      piece.key = ShortPieceCache::kNoKey;
      if (size <= LongPieceCache::kMaxBytes)
        caches_.long_pieces.prefetch_near(long_key_of(piece.text));
    }
  }
  // Looks up all pieces in the nearer cache line, and prefetches the farther line for the others.
  void look_up() {
    size_t n_missed = 0;
    for (size_t i = 0; i < size_; ++i) {
      pieces_[i].entry = caches_.short_pieces.find_near(pieces_[i].key);
      missed_[n_missed] = static_cast<uint8_t>(i);
      n_missed += pieces_[i].entry == nullptr ? 1 : 0;
    }
    for (size_t i = 0; i < n_missed; ++i) {
      const Piece& piece = pieces_[missed_[i]];
      if (piece.text.size() > LongPieceCache::kMaxBytes) continue;
      if (piece.text.size() <= ShortPieceCache::kMaxBytes)
        caches_.short_pieces.prefetch_far(piece.key);
      if (piece.text.size() <= ShortPieceCache::kMaxIds) continue;
      const auto key = long_key_of(piece.text);
      caches_.long_pieces.prefetch_near(key);
      caches_.long_pieces.prefetch_far(key);
    }
  }
  std::span<const Piece> pieces() const { return std::span(pieces_).first(size_); }
  void clear() { size_ = 0; }

  LongPieceCache::Key long_key_of(std::string_view text) const {
    return LongPieceCache::key_of(text.data(), text.size(),
                                  static_cast<size_t>(text_end_ - text.data()));
  }

 private:
  PieceCaches& caches_;
  const char* text_end_;
  size_t size_ = 0;
  std::array<Piece, 32> pieces_;
  std::array<uint8_t, 32> missed_;
};

}  // namespace limpid
