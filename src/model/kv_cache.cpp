#include "model/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {

KvCache::KvCache(Executor& executor, KvLayout layout, int64_t n_positions) {
  LIMPID_CHECK(ArgumentError, n_positions > 0,
               "a KV cache needs room for at least one position, not {}", n_positions);
  layout.n_blocks = blocks_for(n_positions);
  storage_ = executor.allocate_kv(layout);
  grow(n_positions);
}

// New blocks go below the others on the stack, so that memory that was touched before is used
// first. The lists of tokens have their size from the start: if they grew while requests run, they
// would lie scattered over the memory of requests that have ended, which malloc could not return.
void KvCache::grow(int64_t n_positions) {
  const int64_t n_wanted = blocks_for(n_positions);
  if (n_wanted > layout().n_blocks) storage_->grow(n_wanted);
  const int64_t n_before = n_blocks();
  free_blocks_.reserve(static_cast<size_t>(layout().n_blocks));
  blocks_.resize(static_cast<size_t>(layout().n_blocks));
  std::vector<int32_t> added;
  for (int64_t i = layout().n_blocks; i-- > n_before;) {
    block(static_cast<int32_t>(i)).tokens.reserve(kKvBlock);
    added.push_back(static_cast<int32_t>(i));
  }
  free_blocks_.insert(free_blocks_.begin(), added.begin(), added.end());
}

uint64_t KvCache::bytes_to_grow(int64_t n_positions) const {
  return storage_->bytes_to_grow(blocks_for(n_positions));
}

SequenceId KvCache::add_sequence(uint64_t variant) {
  sequences_.emplace(next_id_, Sequence{variant, {}, {}});
  return next_id_++;
}

void KvCache::remove_sequence(SequenceId id) {
  truncate(id, 0);
  sequences_.erase(id);
}

// From the last block to the first: the end of a prefix then counts as older than its beginning,
// and is evicted first.
void KvCache::truncate(SequenceId id, int64_t n) {
  Sequence& sequence = at(id);
  const int64_t length = std::min(n, std::ssize(sequence.tokens));
  while (std::ssize(sequence.blocks) > blocks_for(length)) {
    if (std::ssize(sequence.blocks) == blocks_for(std::ssize(sequence.tokens)))
      keep_partial_block(sequence);
    release(sequence.blocks.back());
    sequence.blocks.pop_back();
    sequence.tokens.resize(static_cast<size_t>(std::max(
        length, std::min(std::ssize(sequence.tokens), std::ssize(sequence.blocks) * kKvBlock))));
  }
  sequence.tokens.resize(static_cast<size_t>(length));
}

// Keeps a block of the tree from being evicted.
struct KvCache::InUse {
  InUse(KvCache& cache, int32_t index) : cache_(cache), index_(index) { cache_.use(index_); }
  ~InUse() { cache_.release(index_); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  KvCache& cache_;
  int32_t index_;
};

// Full blocks are shared. A block that agrees only at its beginning is copied, because the sequence
// will write to it.
int64_t KvCache::adopt(SequenceId id, std::span<const int32_t> tokens) {
  Sequence& sequence = at(id);
  truncate(id, length(id));  // release blocks that are reserved and not used
  const auto extend = [&](int64_t n) {
    const auto added = tokens.subspan(sequence.tokens.size(), static_cast<size_t>(n));
    sequence.tokens.insert(sequence.tokens.end(), added.begin(), added.end());
  };
  while (std::ssize(tokens) - length(id) > 1) {
    const int64_t index = length(id) / kKvBlock;
    const int64_t n_there = length(id) % kKvBlock;  // of a block of its own
    const auto first = static_cast<size_t>(index * kKvBlock);
    const auto n_most = std::min<size_t>(kKvBlock, tokens.size() - 1 - first);
    const auto [child, n_equal] =
        best_child(parent_of(sequence, index), tokens.subspan(first, n_most));
    if (n_equal <= n_there) break;
    if (n_equal < kKvBlock) {
      const InUse copied(*this, child);
      if (n_there == 0 && n_free_blocks() > 0) {
        sequence.blocks.push_back(copy_of(child));
        extend(n_equal);
      }
      break;
    }
    use(child);
    if (n_there > 0) {
      release(std::exchange(sequence.blocks.back(), child));
    } else {
      sequence.blocks.push_back(child);
    }
    extend(kKvBlock - n_there);
  }
  return length(id);
}

int64_t KvCache::n_blocks_needed(SequenceId id, int64_t n_new) const {
  const Sequence& sequence = at(id);
  if (n_new <= 0) return 0;
  const int64_t n_more = blocks_for(length(id) + n_new) - std::ssize(sequence.blocks);
  const bool copies = last_is_shared(sequence) && block(sequence.blocks.back()).n_users > 1;
  return std::max<int64_t>(n_more, 0) + (copies ? 1 : 0);
}

void KvCache::reserve(SequenceId id, int64_t n_new) {
  Sequence& sequence = at(id);
  const int64_t n_needed = n_blocks_needed(id, n_new);
  if (n_needed > n_free_blocks()) {
    const int64_t held = std::ssize(sequence.blocks) + n_free_blocks();
    throw ContextOverflowError(length(id) + n_new, held * kKvBlock);
  }
  if (n_new > 0 && last_is_shared(sequence)) make_last_private(sequence);
  sequence.blocks.reserve(sequence.blocks.size() + static_cast<size_t>(n_needed));
  while (std::ssize(sequence.blocks) < blocks_for(length(id) + n_new))
    sequence.blocks.push_back(take_block());
}

void KvCache::advance(SequenceId id, std::span<const int32_t> tokens) {
  Sequence& sequence = at(id);
  const int64_t first = length(id) / kKvBlock;
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  LIMPID_ASSERT(blocks_for(length(id)) <= std::ssize(sequence.blocks));
  for (int64_t i = first; i < length(id) / kKvBlock; ++i) keep_full_block(sequence, i);
}

// A full block is in the tree. It is partly filled only for a sequence that was truncated.
bool KvCache::last_is_shared(const Sequence& sequence) const {
  const auto n = std::ssize(sequence.tokens);
  if (n % kKvBlock == 0) return false;
  const Block& last = block(sequence.blocks[static_cast<size_t>(n / kKvBlock)]);
  return last.n_users > 1 || last.in_tree;
}

uint64_t KvCache::parent_of(const Sequence& sequence, int64_t index) const {
  if (index == 0) return sequence.root;
  return block(sequence.blocks[static_cast<size_t>(index - 1)]).node;
}

std::pair<int32_t, int64_t> KvCache::best_child(uint64_t parent,
                                                std::span<const int32_t> tokens) const {
  std::pair<int32_t, int64_t> best{-1, 0};
  const auto [begin, end] = children_.equal_range(parent);
  for (auto child = begin; child != end; ++child) {
    const auto& held = block(child->second).tokens;
    const auto n_equal = std::ranges::mismatch(held, tokens).in1 - held.begin();
    if (n_equal > best.second) best = {child->second, n_equal};
  }
  return best;
}

// ---- one block ----------------------------------------------------------------------------------

// Takes a free block, or else evicts the idle block of the tree that was used least recently.
int32_t KvCache::take_block() {
  if (free_blocks_.empty()) {
    int32_t oldest = -1;
    for (int32_t i = 0; i < n_blocks(); ++i) {
      const bool idle = block(i).n_users == 0 && block(i).in_tree;
      if (idle && (oldest < 0 || block(i).last_use < block(oldest).last_use)) oldest = i;
    }
    leave_tree(oldest);
    --n_idle_;
    free_blocks_.push_back(oldest);
  }
  const int32_t index = free_blocks_.back();
  free_blocks_.pop_back();
  block(index).n_users = 1;
  return index;
}

void KvCache::use(int32_t index) {
  if (block(index).n_users++ == 0) --n_idle_;
}

void KvCache::release(int32_t index) noexcept {
  Block& released = block(index);
  if (--released.n_users > 0) return;
  if (released.in_tree) {
    released.last_use = ++clock_;
    ++n_idle_;
  } else {
    free_blocks_.push_back(index);  // does not allocate: the capacity is the number of blocks
  }
}

int32_t KvCache::copy_of(int32_t from) {
  std::vector<std::byte> content(storage_->block_bytes());
  storage_->read_block(from, content);
  const int32_t copy = take_block();
  try {
    storage_->write_block(copy, content);
  } catch (...) {
    release(copy);
    throw;
  }
  return copy;
}

void KvCache::enter_tree(int32_t index, uint64_t parent, std::span<const int32_t> tokens) {
  Block& entering = block(index);
  entering.tokens.assign(tokens.begin(), tokens.end());
  entering.parent = parent;
  entering.node = std::ssize(tokens) == kKvBlock ? next_node_++ : 0;
  children_.emplace(parent, index);
  entering.in_tree = true;
}

void KvCache::leave_tree(int32_t index) {
  const auto [begin, end] = children_.equal_range(block(index).parent);
  children_.erase(
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == index; }));
  block(index).in_tree = false;
  block(index).node = 0;
}

// If no other sequence uses the block, it is removed from the tree, and the sequence writes to it.
void KvCache::make_last_private(Sequence& sequence) {
  int32_t& last = sequence.blocks.back();
  if (block(last).n_users == 1) return leave_tree(last);
  release(std::exchange(last, copy_of(last)));
}

// If another sequence filled a block with the same tokens first, this one goes on with that block.
void KvCache::keep_full_block(Sequence& sequence, int64_t index) {
  int32_t& own = sequence.blocks[static_cast<size_t>(index)];
  const auto tokens =
      std::span(sequence.tokens).subspan(static_cast<size_t>(index * kKvBlock), kKvBlock);
  const uint64_t parent = parent_of(sequence, index);
  const auto [child, n_equal] = best_child(parent, tokens);
  if (n_equal < kKvBlock) return enter_tree(own, parent, tokens);
  use(child);
  release(std::exchange(own, child));
}

// Keeps the last block of a sequence that ends in the tree, unless the tree already holds these
// tokens.
void KvCache::keep_partial_block(Sequence& sequence) {
  const int64_t n = std::ssize(sequence.tokens) % kKvBlock;
  if (n == 0 || last_is_shared(sequence)) return;
  const auto tokens = std::span(sequence.tokens).last(static_cast<size_t>(n));
  const uint64_t parent = parent_of(sequence, std::ssize(sequence.blocks) - 1);
  if (best_child(parent, tokens).second < n) enter_tree(sequence.blocks.back(), parent, tokens);
}

const KvCache::Sequence& KvCache::at(SequenceId id) const {
  const auto it = sequences_.find(id);
  LIMPID_CHECK(ArgumentError, it != sequences_.end(), "the KV cache has no sequence {}", id);
  return it->second;
}

KvCache::Sequence& KvCache::at(SequenceId id) {
  return const_cast<Sequence&>(std::as_const(*this).at(id));
}

}  // namespace limpid
