// Maps the positions of sequences to blocks of the executor's KV storage.
//
// Every token of a sequence leaves one key and one value per layer and KV head, which all later
// tokens of that sequence read. How long a sequence will become is unknown, so one contiguous array
// per sequence would waste memory or force copies. As in an operating system's page table, the
// storage is divided into blocks of kKvBlock = 64 positions, and each sequence has a list of the
// blocks that it owns (PagedAttention, Kwon et al. 2023, arXiv:2309.06180).
//
// Example with 5 blocks: sequence A holds 70 positions, B holds 10.
//   blocks(A) = {0, 1}     position 66 of A is at block 1, offset 66 % 64 = 2
//   blocks(B) = {2}        free: 4, 3 (a stack; block 3 is used next)
// Removing A returns blocks 1 and 0 to the stack, where any sequence can take them. A block holds
// its 64 positions for all layers. Only the last block of a sequence is partly empty.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/executor.h"

namespace limpid {

using SequenceId = int32_t;

// The cache of all sequences that one model runs. Blocks are taken by `reserve` before a step and
// given back by `truncate` and `remove_sequence`.
class KvCache {
 public:
  // Allocates whole blocks for at least `n_positions` positions, shared by all sequences. Throws
  // ArgumentError, ResourceError.
  KvCache(Executor& executor, KvLayout layout, int64_t n_positions);

  SequenceId add_sequence();            // starts an empty sequence; ids are never reused
  void remove_sequence(SequenceId id);  // frees its blocks
  // Forgets positions >= n. Frees every block that then holds no position, including blocks that
  // were reserved and never used.
  void truncate(SequenceId id, int64_t n);
  int64_t length(SequenceId id) const { return at(id).length; }  // positions stored
  int64_t n_free_blocks() const { return static_cast<int64_t>(free_blocks_.size()); }

  // Takes blocks so that the sequence can hold `n_new` more positions. Throws ContextOverflowError
  // and then changes nothing. truncate(id, length(id)) gives back what was reserved and not used.
  void reserve(SequenceId id, int64_t n_new);
  // Counts `n_new` more positions as stored. Call it after `reserve` and after the step.
  void advance(SequenceId id, int64_t n_new);
  // The sequence's physical blocks, ordered by position.
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
