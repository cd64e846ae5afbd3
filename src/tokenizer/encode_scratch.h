// The working memory of one encode. It is kept between calls, so that encoding allocates nothing
// once it is warm.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/linear_bpe.h"
#include "tokenizer/merger.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Collects ids in a small buffer before they go to a vector, so that most ids need no check for
// capacity. Call flush() to move the buffered ids to the vector. A vector's push_back tests the
// capacity for each id; the sink tests once per piece.
class IdSink {
 public:
  explicit IdSink(std::vector<TokenId>& out) : out_(out) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  template <size_t kWords>
  void put(const typename PieceCache<kWords>::Entry& entry) {
    if (size_ + PieceCache<kWords>::kMaxIds > kSize) flush();
    entry.unpack(ids_.data() + size_);
    size_ += entry.count();
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

// All buffers that one encode needs, including the caches of pieces.
struct EncodeScratch {
  PieceCaches pieces;
  Merger merger;
  LinearBpe::Work linear;
  std::vector<TokenId> symbols;
  std::string text;             // the normalized text, if it differs
  std::vector<int32_t> points;  // for its normalization
  std::string word;
  std::string normalized;  // a stretch in which normalized special tokens are looked for
  SpecialMatcher::Work specials, normalized_specials;
};

// A pool of scratch objects of one tokenizer; each encode that is running uses one. The caches
// inside belong to that tokenizer.
class ScratchPool {
  struct GiveBack {
    ScratchPool* pool;
    void operator()(EncodeScratch* scratch) const {
      std::unique_ptr<EncodeScratch> owned(scratch);
      const std::lock_guard lock(pool->mutex_);
      // Keep only a few, so that a burst of threads does not hold memory forever.
      if (pool->idle_.size() < pool->idle_.capacity()) pool->idle_.push_back(std::move(owned));
    }
  };

 public:
  using Lease = std::unique_ptr<EncodeScratch, GiveBack>;

  ScratchPool() { idle_.reserve(16); }
  Lease acquire() {
    std::unique_ptr<EncodeScratch> scratch;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        scratch = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (scratch == nullptr) scratch = std::make_unique<EncodeScratch>();
    return {scratch.release(), GiveBack{this}};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> idle_;
};

}  // namespace limpid
