// Maps the positions of sequences to blocks of the executor's KV storage, and finds what is already
// there.
//
// For every token of a sequence the cache holds one key and one value per layer and KV head, which
// all later tokens of that sequence read. How long a sequence will become is unknown, so one
// contiguous array per sequence would waste memory or force copies. As in an operating system's
// page table, the storage is divided into blocks of kKvBlock = 64 positions, and each sequence has
// a list of the blocks that it uses (PagedAttention, Kwon et al. 2023, arXiv:2309.06180).
//
// Example with 5 blocks: sequence A holds 70 positions, B holds 10.
//   blocks(A) = {0, 1}     position 66 of A is at block 1, offset 66 % 64 = 2
//   blocks(B) = {2}        free: 4, 3 (a stack; block 3 is used next)
//
// Sequences share blocks. A key depends on the tokens up to its position and on nothing else, to
// the bit, so two sequences that begin with the same 64 tokens have the same first block. Each full
// block becomes a node of a tree whose paths are prefixes (compare RadixAttention, Zheng et al.
// 2023, arXiv:2312.07104):
//   root --"You are a helpful …"--> block 0 --"… What is 2 + 2?"--> block 1
//                                           \--"… Tell me a joke."--> block 4
// A sequence that begins like a path of the tree shares its full blocks, and copies the beginning
// of the next one as far as the tokens agree. The last, partly filled block of a sequence that ends
// becomes a leaf of the tree too. A block that no sequence uses any more stays in the tree until
// its memory is needed for another. The block that was used least recently is evicted first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/divide_up.h"
#include "executor/executor.h"

namespace limpid {

// The blocks that hold so many positions.
inline int64_t blocks_for(int64_t n_positions) { return divide_up(n_positions, kKvBlock); }

// A number that no other sequence of a cache ever had. A task that waits for room starts and ends a
// sequence at every tick of the scheduler, so 32 bits would not last for the weeks that a server
// runs.
using SequenceId = int64_t;

// The cache of all sequences that one model runs. Blocks are taken by `reserve` before a step and
// given back by `truncate` and `remove_sequence`.
class KvCache {
 public:
  // Allocates whole blocks for at least `n_positions` positions, shared by all sequences. Throws
  // ArgumentError, ResourceError.
  KvCache(Executor& executor, KvLayout layout, int64_t n_positions);

  // Adds memory until there is room for `n_positions` in all. Throws ResourceError.
  void grow(int64_t n_positions);
  // KvStorage::bytes_to_grow for `n_positions` in all.
  uint64_t bytes_to_grow(int64_t n_positions) const;

  // Starts an empty sequence; ids are never reused. Sequences of different variants (weights with
  // another adapter, for instance) share nothing.
  SequenceId add_sequence(uint64_t variant = 0);
  void remove_sequence(SequenceId id);  // gives its blocks back
  // Forgets positions >= n. Gives back every block that then holds no position, including blocks
  // that were reserved and never used.
  void truncate(SequenceId id, int64_t n);
  int64_t length(SequenceId id) const { return std::ssize(at(id).tokens); }  // positions stored
  // Extends the sequence, which is a prefix of `tokens`, by what the tree holds of the tokens that
  // follow. Never takes the last token, because the caller needs its logits. Returns the new
  // length.
  int64_t adopt(SequenceId id, std::span<const int32_t> tokens);

  int64_t n_blocks() const { return std::ssize(blocks_); }
  // Blocks that no sequence uses, those of the tree included.
  int64_t n_free_blocks() const { return std::ssize(free_blocks_) + n_idle_; }
  int64_t n_idle_blocks() const { return n_idle_; }  // in the tree, and used by no sequence
  // Blocks that reserve(id, n_new) would take.
  int64_t n_blocks_needed(SequenceId id, int64_t n_new) const;

  // Takes blocks so that the sequence can hold `n_new` more positions. A partly filled last block
  // that others use too is copied first. Throws ContextOverflowError and then changes nothing.
  // truncate(id, length(id)) gives back what was reserved and not used.
  void reserve(SequenceId id, int64_t n_new);
  // Counts the positions of `tokens` as stored. Call it after `reserve` and after the step. Blocks
  // that are now full enter the tree.
  void advance(SequenceId id, std::span<const int32_t> tokens);
  // The sequence's physical blocks, ordered by position.
  std::span<const int32_t> blocks(SequenceId id) const { return at(id).blocks; }
  KvStorage& storage() { return *storage_; }
  const KvLayout& layout() const { return storage_->layout(); }

 private:
  struct Block {
    int32_t n_users = 0;
    bool in_tree = false;
    uint64_t parent = 0;  // the node before it
    uint64_t node = 0;    // its own number, never used twice; 0 while it is not full
    std::vector<int32_t> tokens;
    uint64_t last_use = 0;
  };
  struct Sequence {
    uint64_t root;
    std::vector<int32_t> blocks;
    std::vector<int32_t> tokens;  // of the positions stored
  };

  const Sequence& at(SequenceId id) const;
  Sequence& at(SequenceId id);
  Block& block(int32_t index) { return blocks_[static_cast<size_t>(index)]; }
  const Block& block(int32_t index) const { return blocks_[static_cast<size_t>(index)]; }
  // Whether the last block is partly filled and must not be written to by this sequence as it is.
  bool last_is_shared(const Sequence& sequence) const;
  // The node before a sequence's block `index`.
  uint64_t parent_of(const Sequence& sequence, int64_t index) const;
  // The child of `parent` that agrees with the most of `tokens`, and how many; {-1, 0} without one.
  std::pair<int32_t, int64_t> best_child(uint64_t parent, std::span<const int32_t> tokens) const;

  struct InUse;
  int32_t take_block();
  void use(int32_t index);
  void release(int32_t index) noexcept;
  // Takes a block for the content of `from`. If the copy throws, no block is taken.
  int32_t copy_of(int32_t from);
  void enter_tree(int32_t index, uint64_t parent, std::span<const int32_t> tokens);
  void leave_tree(int32_t index);
  void make_last_private(Sequence& sequence);
  void keep_full_block(Sequence& sequence, int64_t index);
  void keep_partial_block(Sequence& sequence);

  std::unique_ptr<KvStorage> storage_;
  std::vector<Block> blocks_;
  std::vector<int32_t> free_blocks_;  // a stack of blocks that are not in the tree
  int64_t n_idle_ = 0;
  std::unordered_multimap<uint64_t, int32_t> children_;  // of each node
  std::unordered_map<SequenceId, Sequence> sequences_;
  SequenceId next_id_ = 0;
  uint64_t next_node_ = uint64_t{1} << 63U;  // smaller numbers are the roots of variants
  uint64_t clock_ = 0;
};

}  // namespace limpid
