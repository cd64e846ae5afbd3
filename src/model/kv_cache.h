// Bookkeeping of the KV cache: which blocks of the executor's storage hold which positions of which
// sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/executor.h"

namespace limpid {

using SequenceId = int32_t;

class KvCache {
 public:
  // Room for `n_positions` in all, over all sequences, in whole blocks.
  KvCache(Executor& executor, KvLayout layout, int64_t n_positions);

  SequenceId add_sequence();            // an empty one; ids are not used again
  void remove_sequence(SequenceId id);  // its blocks are free
  // Forgets positions >= n, and gives back the blocks that hold no position then, those that were
  // reserved and never used among them.
  void truncate(SequenceId id, int64_t n);
  int64_t length(SequenceId id) const { return at(id).length; }  // positions stored
  int64_t n_free_blocks() const { return static_cast<int64_t>(free_blocks_.size()); }

  // Takes blocks so that the sequence can hold `n_new` more positions. Throws ContextOverflowError,
  // changing nothing. What is not used after all goes back with truncate(id, length(id)).
  void reserve(SequenceId id, int64_t n_new);
  // Counts `n_new` positions as stored (after reserve).
  void advance(SequenceId id, int64_t n_new);
  // Physical blocks, in order of position.
  std::span<const int32_t> blocks(SequenceId id) const { return at(id).blocks; }
  KvStorage& storage() { return *storage_; }
  const KvLayout& layout() const { return storage_->layout(); }

 private:
  struct Sequence {
    std::vector<int32_t> blocks;
    int64_t length = 0;
  };
  const Sequence& at(SequenceId id) const;
  Sequence& at(SequenceId id);

  std::unique_ptr<KvStorage> storage_;
  std::vector<int32_t> free_blocks_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  SequenceId next_id_ = 0;
};

}  // namespace limpid
