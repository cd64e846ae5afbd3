#include "model/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

int64_t blocks_for(int64_t n_positions) { return (n_positions + kKvBlock - 1) / kKvBlock; }

}  // namespace

KvCache::KvCache(Executor& executor, KvLayout layout, int64_t n_positions) {
  LIMPID_CHECK(ArgumentError, n_positions > 0,
               "a KV cache needs room for at least one position, not {}", n_positions);
  layout.n_blocks = blocks_for(n_positions);
  storage_ = executor.allocate_kv(layout);
  free_blocks_.reserve(static_cast<size_t>(layout.n_blocks));
  for (int64_t i = layout.n_blocks; i-- > 0;) free_blocks_.push_back(static_cast<int32_t>(i));
}

SequenceId KvCache::add_sequence() {
  sequences_.emplace(next_id_, Sequence{});
  return next_id_++;
}

void KvCache::remove_sequence(SequenceId id) {
  truncate(id, 0);
  sequences_.erase(id);
}

void KvCache::truncate(SequenceId id, int64_t n) {
  Sequence& sequence = at(id);
  sequence.length = std::min(n, sequence.length);
  const auto n_kept = static_cast<size_t>(blocks_for(sequence.length));
  while (sequence.blocks.size() > n_kept) {
    free_blocks_.push_back(
        sequence.blocks.back());  // does not allocate: the capacity is the number of blocks
    sequence.blocks.pop_back();
  }
}

// Takes the last free blocks first, i.e. those that were used most recently, so that short sessions
// touch few pages of the storage.
void KvCache::reserve(SequenceId id, int64_t n_new) {
  Sequence& sequence = at(id);
  const int64_t wanted =
      std::max<int64_t>(0, blocks_for(sequence.length + n_new) - std::ssize(sequence.blocks));
  if (wanted > n_free_blocks()) {
    const int64_t held = std::ssize(sequence.blocks) + n_free_blocks();
    throw ContextOverflowError(sequence.length + n_new, held * kKvBlock);
  }
  sequence.blocks.insert(sequence.blocks.end(), free_blocks_.rbegin(),
                         free_blocks_.rbegin() + wanted);
  free_blocks_.resize(free_blocks_.size() - static_cast<size_t>(wanted));
}

void KvCache::advance(SequenceId id, int64_t n_new) {
  Sequence& sequence = at(id);
  sequence.length += n_new;
  LIMPID_ASSERT(blocks_for(sequence.length) <= static_cast<int64_t>(sequence.blocks.size()));
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
