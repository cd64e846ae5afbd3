#include "model/kv_cache.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

int64_t blocks_for(int64_t n_positions) { return (n_positions + kKvBlock - 1) / kKvBlock; }

uint64_t random_seed() {
  std::random_device random;
  return uint64_t{random()} << 32U | random();
}

}  // namespace

KvCache::KvCache(Executor& executor, KvLayout layout, int64_t n_positions)
    : table_(0, Hash{random_seed()}) {
  LIMPID_CHECK(ArgumentError, n_positions > 0,
               "a KV cache needs room for at least one position, not {}", n_positions);
  layout.n_blocks = blocks_for(n_positions);
  storage_ = executor.allocate_kv(layout);
  grow(n_positions);
}

// New blocks go below the others on the stack, so that memory that was touched before is used
// first.
void KvCache::grow(int64_t n_positions) {
  const int64_t n_wanted = blocks_for(n_positions);
  if (n_wanted > layout().n_blocks) storage_->grow(n_wanted);
  const int64_t n_before = n_blocks();
  free_blocks_.reserve(static_cast<size_t>(layout().n_blocks));
  blocks_.resize(static_cast<size_t>(layout().n_blocks));
  std::vector<int32_t> added;
  for (int64_t i = layout().n_blocks; i-- > n_before;) added.push_back(static_cast<int32_t>(i));
  free_blocks_.insert(free_blocks_.begin(), added.begin(), added.end());
}

SequenceId KvCache::add_sequence(uint32_t variant) {
  sequences_.emplace(next_id_, Sequence{variant, {}, {}});
  return next_id_++;
}

void KvCache::remove_sequence(SequenceId id) {
  truncate(id, 0);
  sequences_.erase(id);
}

// From the last block to the first: the end of a prefix is then older than its beginning, and goes
// first.
void KvCache::truncate(SequenceId id, int64_t n) {
  Sequence& sequence = at(id);
  const int64_t length = std::min(n, std::ssize(sequence.tokens));
  sequence.tokens.resize(static_cast<size_t>(length));
  while (std::ssize(sequence.blocks) > blocks_for(length)) {
    release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
}

int64_t KvCache::adopt(SequenceId id, std::span<const int32_t> tokens) {
  Sequence& sequence = at(id);
  truncate(id, length(id));  // blocks that are reserved and not used would be in the way
  for (int64_t i = length(id) / kKvBlock; (i + 1) * kKvBlock < std::ssize(tokens); ++i) {
    const auto found = table_.find(content_of(sequence, i, tokens));
    if (found == table_.end()) break;
    use(found->second);
    if (i < std::ssize(sequence.blocks)) {
      release(std::exchange(sequence.blocks.back(), found->second));
    } else {
      sequence.blocks.push_back(found->second);
    }
    const auto n = static_cast<size_t>((i + 1) * kKvBlock);
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin() + length(id), tokens.begin() + n);
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
  for (int64_t i = first; i < length(id) / kKvBlock; ++i) enter_table(sequence, i);
}

// Whether others use the block or find it in the table. A block of the table is always full, so it
// is partly filled only for a sequence that was truncated.
bool KvCache::last_is_shared(const Sequence& sequence) const {
  const auto n = std::ssize(sequence.tokens);
  if (n % kKvBlock == 0) return false;
  const Block& last = block(sequence.blocks[static_cast<size_t>(n / kKvBlock)]);
  return last.n_users > 1 || last.node != 0;
}

KvCache::Content KvCache::content_of(const Sequence& sequence, int64_t index,
                                     std::span<const int32_t> tokens) const {
  Content content{sequence.root, {}};
  if (index > 0) content.parent = block(sequence.blocks[static_cast<size_t>(index - 1)]).node;
  std::ranges::copy(tokens.subspan(static_cast<size_t>(index * kKvBlock), kKvBlock),
                    content.tokens.begin());
  return content;
}

// Multiplication mixes upwards and the shift brings the upper bits down (as in MurmurHash's
// finaliser).
size_t KvCache::Hash::operator()(const Content& content) const {
  uint64_t hash = seed ^ content.parent;
  for (const int32_t token : content.tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  }
  return hash;
}

// ---- one block ----------------------------------------------------------------------------------

// A block that holds nothing, or else the one of the table that was used least recently.
int32_t KvCache::take_block() {
  if (free_blocks_.empty()) {
    int32_t oldest = -1;
    for (int32_t i = 0; i < n_blocks(); ++i) {
      const bool idle = block(i).n_users == 0 && block(i).node != 0;
      if (idle && (oldest < 0 || block(i).last_use < block(oldest).last_use)) oldest = i;
    }
    leave_table(oldest);
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
  if (released.node != 0) {
    released.last_use = ++clock_;
    ++n_idle_;
  } else {
    free_blocks_.push_back(index);  // does not allocate: the capacity is the number of blocks
  }
}

void KvCache::leave_table(int32_t index) {
  Block& leaving = block(index);
  table_.erase(table_.find(*leaving.content));
  leaving.content = nullptr;
  leaving.node = 0;
}

// If no other sequence uses the block, it leaves the table, and the sequence writes to it.
void KvCache::make_last_private(Sequence& sequence) {
  int32_t& last = sequence.blocks.back();
  if (block(last).n_users == 1) return leave_table(last);
  const int32_t copy = take_block();
  std::vector<std::byte> content(storage_->block_bytes());
  storage_->read_block(last, content);
  storage_->write_block(copy, content);
  release(std::exchange(last, copy));
}

// If another sequence entered the same tokens first, this one goes on with that block.
void KvCache::enter_table(Sequence& sequence, int64_t index) {
  int32_t& own = sequence.blocks[static_cast<size_t>(index)];
  const auto [entry, added] = table_.try_emplace(content_of(sequence, index, sequence.tokens), own);
  if (added) {
    block(own).node = next_node_++;
    block(own).content = &entry->first;
  } else {
    use(entry->second);
    release(std::exchange(own, entry->second));
  }
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
