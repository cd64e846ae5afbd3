// Looks up pieces in batches, so that the memory for one piece is fetched while other pieces are
// cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tokenizer/piece_cache.h"

namespace limpid {

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
