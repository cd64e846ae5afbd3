#include "model/kv_cache.h"

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
  if (n >= sequence.length) return;
  sequence.length = n;
  for (const auto kept = static_cast<size_t>(blocks_for(n)); sequence.blocks.size() > kept;) {
    free_blocks_.push_back(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
}

void KvCache::reserve(SequenceId id, int64_t n_new) {
  Sequence& sequence = at(id);
  const int64_t wanted =
      blocks_for(sequence.length + n_new) - static_cast<int64_t>(sequence.blocks.size());
  if (wanted > n_free_blocks()) {
    const int64_t held = static_cast<int64_t>(sequence.blocks.size()) + n_free_blocks();
    throw ContextOverflowError(sequence.length + n_new, held * kKvBlock);
  }
  for (int64_t i = 0; i < wanted; ++i) {
    sequence.blocks.push_back(free_blocks_.back());
    free_blocks_.pop_back();
  }
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
