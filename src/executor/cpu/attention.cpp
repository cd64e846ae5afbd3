// Causal attention over the KV cache: which thread computes what, in which order.
//
// A softmax over all positions can be computed in parts (Milakov & Gimelshein 2018,
// arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). For one query and one block of 64
// positions, the partial result ("partial") is
//   m, the largest score;  s, the sum of exp(score - m);  a [head_dim], the sum of exp(score - m) V
// Two partials merge into the partial of both blocks:
//   m = max(m1, m2),  s = s1 exp(m1 - m) + s2 exp(m2 - m),  a = a1 exp(m1 - m) + a2 exp(m2 - m)
// After the last block, a / s is the output of the query. Example with two positions of scores 1
// and 3 and values V1 and V2, as if a block had one position: the partials are (1, 1, V1) and
// (3, 1, V2), which merge into (3, e^-2 + 1, e^-2 V1 + V2).
//
// Another order of merging would round differently. So the blocks of a query are always merged in
// order of position, starting from (-inf, 0, 0), whichever thread computed them. The bits are then
// the same whether a prompt is evaluated at once, in chunks, or token by token.
//
// A task is one KV head and up to kAttentionQueries queries that read its keys: the query heads of
// its group, for a few neighbouring tokens. Llama 3.2 1B has 32 query heads on 8 KV heads, 4 per
// group, so a task has 12 tokens, and a prompt of 600 tokens is 50 x 8 tasks.
//  - Many tasks (a prompt): attend_whole. A thread takes a task and goes through its blocks.
//  - Few tasks of many blocks (decode has one task per KV head): attend_split. Threads share the
//    blocks too. All blocks of all tasks are in one row, of which each thread has a part:
//
//      task 0, blocks 0 to 31 | task 1, blocks 0 to 31 | task 2, blocks 0 to 31
//      thread 0 ----------------------------> thread 1 ------------------------>
//
//    A thread that computes the block after the last merged one merges it at once, as
//    attend_whole does. Thread 1 finds that blocks 0 to 15 of task 1 are not merged yet. So it
//    keeps the partials of the others, each in memory of its own, and whichever thread computes the
//    last block of a task merges what was kept, in order of position. A wave has at most 64 blocks
//    of each task (4,096 positions), and the next wave uses the same memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/divide_up.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {
namespace {

constexpr int64_t kBlocksPerWave = 64;  // blocks whose partials are kept at once
constexpr int64_t kBlocksPerChunk = 4;  // fewest blocks that a thread takes at a time
// Blocks, counted for each query: work on so few is shorter than waking a thread.
constexpr int64_t kFewQueryBlocks = 32;
constexpr int64_t kTasksPerThread = 4;  // with fewer long tasks, threads share their blocks
// Keys that one thread appends in about the time that it takes to wake another one.
constexpr int64_t kElementsToShare = 16384;

AttentionState state_at(float* memory, int64_t n_queries) {
  return {memory, memory + n_queries, memory + 2 * n_queries};
}

int64_t state_floats(int64_t n_queries, int64_t head_dim) {
  return n_queries * (2 + padded_head_dim(head_dim));
}

void clear_state(const AttentionState& state, int64_t n_queries, int64_t head_dim) {
  std::fill_n(state.max, n_queries, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, n_queries, 0.0F);
  std::fill_n(state.accumulator, n_queries * padded_head_dim(head_dim), 0.0F);
}

uint64_t bytes_of_blocks(const KvLayout& layout, int64_t n) {
  return layout.bytes_of(n, padded_head_dim(layout.head_dim));
}

}  // namespace

uint64_t CpuExecutor::kv_bytes(const KvLayout& layout) const {
  return bytes_of_blocks(layout, layout.n_blocks);
}

CpuKvStorage::CpuKvStorage(const KvLayout& layout)
    : KvStorage(layout),
      k_bytes_(tensor_bytes(layout.k_dtype, Shape{kKvBlock, layout.head_dim})),
      v_bytes_(tensor_bytes(layout.v_dtype, Shape{kKvBlock, padded_head_dim(layout.head_dim)})),
      block_bytes_(bytes_of_blocks(layout, 1)) {
  grow(layout.n_blocks);
}

void CpuKvStorage::grow(int64_t n_blocks) {
  const auto n_new = static_cast<uint64_t>(n_blocks) - blocks_.size();
  AlignedBuffer added(bytes_of_blocks(layout(), static_cast<int64_t>(n_new)));
  memory_.reserve(memory_.size() + 1);
  blocks_.reserve(static_cast<size_t>(n_blocks));
  for (uint64_t i = 0; i < n_new; ++i) blocks_.push_back(added.data() + i * block_bytes_);
  memory_.push_back(std::move(added));
  KvStorage::grow(n_blocks);
}

void CpuKvStorage::read_block(int64_t block, std::span<std::byte> out) const {
  std::memcpy(out.data(), blocks_[static_cast<size_t>(block)], block_bytes_);
}

void CpuKvStorage::write_block(int64_t block, std::span<const std::byte> content) {
  std::memcpy(blocks_[static_cast<size_t>(block)], content.data(), block_bytes_);
}

std::unique_ptr<KvStorage> CpuExecutor::allocate_kv(const KvLayout& layout) {
  auto storage = std::make_unique<CpuKvStorage>(layout);
  // For each thread: scores and accumulators of a tile, then partial and state of its queries.
  const int64_t state = state_floats(kAttentionQueries, layout.head_dim);
  const int64_t floats = (attention_scratch_floats(layout.head_dim) + 2 * state + 15) / 16 * 16;
  if (floats > attention_floats_) {
    const auto buffer = [](int64_t n, int64_t n_floats) {
      return AlignedBuffer(tensor_bytes(DType::kF32, Shape{n, n_floats}));
    };
    AlignedBuffer scratch = buffer(pool_.size(), floats);
    const int64_t most_tasks = kTasksPerThread * pool_.size();
    attention_partials_ = buffer(most_tasks * (1 + kBlocksPerWave), state);
    attention_progress_ = std::vector<AttentionProgress>(static_cast<size_t>(most_tasks));
    attention_scratch_ = std::move(scratch);
    attention_floats_ = floats;
  }
  return storage;
}

float* CpuExecutor::attention_scratch(int thread) {
  return attention_scratch_.as<float>().data() + thread * attention_floats_;
}

struct CpuExecutor::AttentionCall {
  CpuExecutor& ex;
  AttentionShape shape;
  CpuKvStorage& kv;
  int64_t layer;
  const StepInputs& inputs;
  std::span<const TokenRange> tiles;
  const float* q;
  float* out;

  int64_t group() const { return shape.n_heads / shape.n_kv_heads; }
  // A group of more than kAttentionQueries query heads is divided into several tasks.
  int64_t heads_per_task() const { return std::min(group(), kAttentionQueries); }
  int64_t tasks_per_group() const { return divide_up(group(), heads_per_task()); }
  int64_t n_tasks() const {
    return static_cast<int64_t>(tiles.size()) * shape.n_kv_heads * tasks_per_group();
  }
  int64_t most_queries() const {
    int64_t most = 0;
    for (const TokenRange& tile : tiles) most = std::max(most, tile.end - tile.begin);
    return most * heads_per_task();
  }

  // The queries of one task: token by token, head by head.
  struct Queries {
    std::array<const float*, kAttentionQueries> q;
    std::array<float*, kAttentionQueries> out;
    std::array<int32_t, kAttentionQueries> n_visible;
    int64_t n = 0;
    int64_t kv_head = 0;
    int64_t sequence = 0;

    int64_t n_blocks() const { return divide_up(n_visible[static_cast<size_t>(n - 1)], kKvBlock); }
    // The first query that sees a position of `block`; the queries after it do too.
    int64_t first_to_see(int64_t block) const {
      int64_t i = 0;
      while (n_visible[static_cast<size_t>(i)] <= block * kKvBlock) ++i;
      return i;
    }
  };
  // The tasks of a head follow one another, so that its keys stay in the caches, and so that half
  // of the tasks are half of the work when some sequences have few queries.
  Queries queries(int64_t task) const {
    Queries result;
    const int64_t part = task % tasks_per_group();
    const int64_t tile_of_all = task / tasks_per_group();
    result.kv_head = tile_of_all / std::ssize(tiles);
    const TokenRange& tile = tiles[static_cast<size_t>(tile_of_all % std::ssize(tiles))];
    result.sequence = inputs.sequences[static_cast<size_t>(tile.begin)];
    const int64_t first = result.kv_head * group() + part * heads_per_task();
    const int64_t last = std::min(first + heads_per_task(), (result.kv_head + 1) * group());
    for (int64_t t = tile.begin; t < tile.end; ++t) {
      for (int64_t head = first; head < last; ++head) {
        const auto i = static_cast<size_t>(result.n++);
        const int64_t at = (t * shape.n_heads + head) * shape.head_dim;
        result.q[i] = q + at;
        result.out[i] = out + at;
        result.n_visible[i] = inputs.positions[static_cast<size_t>(t)] + 1;
      }
    }
    return result;
  }

  AttentionTile tile(const Queries& queries, float* scratch) const {
    return {queries.q.data(), queries.n_visible.data(),
            queries.n,        shape.head_dim,
            shape.scale,      kv.k_is_f16(),
            kv.v_is_f16(),    scratch};
  }
  const std::byte* keys(const Queries& queries, int64_t i) const {
    return kv.k_block(layer, inputs.block_of(queries.sequence, i * kKvBlock), queries.kv_head);
  }
  // Block `i` of the queries' sequence. The block after it is prefetched meanwhile.
  KvBlockView block(const Queries& queries, int64_t i) const {
    const int64_t physical = inputs.block_of(queries.sequence, i * kKvBlock);
    return {keys(queries, i), kv.v_block(layer, physical, queries.kv_head),
            i + 1 < queries.n_blocks() ? keys(queries, i + 1) : nullptr};
  }
  // Writes the results of queries that have seen all of their blocks.
  void finish(const Queries& queries, const AttentionState& state) const {
    for (int64_t i = 0; i < queries.n; ++i) {
      ex.kernels_.finish_attention(state.accumulator + i * padded_head_dim(shape.head_dim),
                                   state.sum[i], shape.head_dim,
                                   queries.out[static_cast<size_t>(i)]);
    }
  }

  // Blocks of one wave of one task.
  struct Wave {
    int64_t task;
    int64_t begin;  // its first block
    int64_t end;    // the task may have fewer blocks
    bool is_last;
    float* state;
    float* partials;
  };

  void append(const float* k, const float* v) const;
  void attend_whole(int64_t task, int thread) const;
  void attend_split(int64_t n_blocks) const;
  void attend_part(const Wave& wave, int64_t first, int64_t n, int thread) const;
  void attend_in_order(const Queries& queries, int64_t begin, int64_t end,
                       const AttentionState& state, int thread) const;
};

void CpuExecutor::AttentionCall::append(const float* k, const float* v) const {
  const int64_t head_dim = shape.head_dim;
  const int64_t cols = shape.n_kv_heads * head_dim;
  const int64_t grain = std::max<int64_t>(1, kElementsToShare / cols);
  ex.pool_.for_each(inputs.n_tokens(), grain, [&](int64_t t) {
    const int64_t position = inputs.positions[static_cast<size_t>(t)];
    const int64_t block = inputs.block_of(inputs.sequences[static_cast<size_t>(t)], position);
    for (int64_t h = 0; h < shape.n_kv_heads; ++h) {
      ex.kernels_.append_kv(k + t * cols + h * head_dim, v + t * cols + h * head_dim,
                            position % kKvBlock, head_dim, kv.k_is_f16(), kv.v_is_f16(),
                            kv.k_block(layer, block, h), kv.v_block(layer, block, h));
    }
  });
}

// Computes the blocks from `begin` to `end` and merges each into `state`, which has those before.
void CpuExecutor::AttentionCall::attend_in_order(const Queries& queries, int64_t begin, int64_t end,
                                                 const AttentionState& state, int thread) const {
  const int64_t head_dim = shape.head_dim;
  float* scratch = ex.attention_scratch(thread);
  const AttentionState partial = state_at(scratch + attention_scratch_floats(head_dim), queries.n);
  const AttentionTile in_scratch = tile(queries, scratch);
  if (begin == 0) clear_state(state, queries.n, head_dim);
  for (int64_t b = begin; b < end; ++b) {
    ex.kernels_.attend_block(in_scratch, b, block(queries, b), partial);
    ex.kernels_.merge_partial(state, partial, queries.first_to_see(b), queries.n, head_dim);
  }
}

void CpuExecutor::AttentionCall::attend_whole(int64_t task, int thread) const {
  const Queries of_task = queries(task);
  const int64_t before =
      attention_scratch_floats(shape.head_dim) + state_floats(of_task.n, shape.head_dim);
  const AttentionState state = state_at(ex.attention_scratch(thread) + before, of_task.n);
  attend_in_order(of_task, 0, of_task.n_blocks(), state, thread);
  finish(of_task, state);
}

// Computes n blocks of a wave, from `first` on.
void CpuExecutor::AttentionCall::attend_part(const Wave& wave, int64_t first, int64_t n,
                                             int thread) const {
  const Queries of_task = queries(wave.task);
  const int64_t end = std::min(first + n, of_task.n_blocks());
  const AttentionState state = state_at(wave.state, of_task.n);
  const auto kept = [&](int64_t b) {
    const int64_t before = (b - wave.begin) * state_floats(of_task.n, shape.head_dim);
    return state_at(wave.partials + before, of_task.n);
  };
  AttentionProgress& progress = ex.attention_progress_[static_cast<size_t>(wave.task)];
  if (progress.n_merged.load(std::memory_order_acquire) == first) {
    attend_in_order(of_task, first, end, state, thread);
    progress.n_merged.store(std::max(first, end), std::memory_order_release);
  } else {
    const AttentionTile in_scratch = tile(of_task, ex.attention_scratch(thread));
    for (int64_t b = first; b < end; ++b)
      ex.kernels_.attend_block(in_scratch, b, block(of_task, b), kept(b));
  }
  if (progress.n_left.fetch_sub(n, std::memory_order_acq_rel) > n) return;
  const int64_t wave_end = std::min(wave.end, of_task.n_blocks());
  for (int64_t b = progress.n_merged.load(std::memory_order_relaxed); b < wave_end; ++b) {
    ex.kernels_.merge_partial(state, kept(b), of_task.first_to_see(b), of_task.n, shape.head_dim);
  }
  if (wave.is_last) finish(of_task, state);
}

// `n_blocks`: the most blocks of a task.
void CpuExecutor::AttentionCall::attend_split(int64_t n_blocks) const {
  const int64_t floats = state_floats(most_queries(), shape.head_dim);
  float* states = ex.attention_partials_.as<float>().data();
  float* partials = states + n_tasks() * floats;
  for (int64_t begin = 0; begin < n_blocks; begin += kBlocksPerWave) {
    const int64_t n_wave = std::min(kBlocksPerWave, n_blocks - begin);
    for (int64_t task = 0; task < n_tasks(); ++task) {
      AttentionProgress& progress = ex.attention_progress_[static_cast<size_t>(task)];
      progress.n_merged.store(begin, std::memory_order_relaxed);
      progress.n_left.store(n_wave, std::memory_order_relaxed);
    }
    ex.pool_.for_ranges(n_tasks() * n_wave, kBlocksPerChunk,
                        [&](int64_t i, int64_t end, int thread) {
                          while (i < end) {
                            const int64_t task = i / n_wave;
                            const int64_t first = i % n_wave;
                            const int64_t n = std::min(end - i, n_wave - first);
                            const Wave wave{task,
                                            begin,
                                            begin + n_wave,
                                            begin + n_wave == n_blocks,
                                            states + task * floats,
                                            partials + task * kBlocksPerWave * floats};
                            attend_part(wave, begin + first, n, thread);
                            i += n;
                          }
                        });
  }
}

void CpuExecutor::make_token_tiles(int64_t tokens_per_tile) {
  token_tiles_.clear();
  const int64_t n = inputs_.n_tokens();
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin + 1;
    while (end < n && end - begin < tokens_per_tile &&
           inputs_.sequences[static_cast<size_t>(end)] ==
               inputs_.sequences[static_cast<size_t>(begin)]) {
      ++end;
    }
    token_tiles_.push_back({begin, end});
    begin = end;
  }
  // About how long a tile takes: its keys are read once and multiplied for each token.
  const auto work = [&](const TokenRange& tile) {
    return (tile.end - tile.begin + 1) * (inputs_.positions[static_cast<size_t>(tile.end - 1)] + 1);
  };
  std::ranges::sort(token_tiles_, {}, work);
}

Activation CpuExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                  KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  auto& storage = static_cast<CpuKvStorage&>(kv);
  check_attention(inputs_, q, k, v, storage.layout(), layer, shape);
  Activation out = allocate(q.rows(), q.cols());
  const int64_t heads_per_task = std::min(shape.n_heads / shape.n_kv_heads, kAttentionQueries);
  make_token_tiles(kAttentionQueries / heads_per_task);
  const AttentionCall call{*this, shape, storage, layer, inputs_, token_tiles_, data(q), data(out)};
  call.append(data(k), data(v));

  const int64_t n_tasks = call.n_tasks();
  int64_t n_query_blocks = 0;
  int64_t most_blocks = 0;  // of a task
  for (const TokenRange& tile : token_tiles_) {
    const int64_t last = inputs_.positions[static_cast<size_t>(tile.end - 1)];
    const int64_t n_blocks = last / kKvBlock + 1;
    n_query_blocks += n_blocks * (tile.end - tile.begin) * shape.n_heads;
    most_blocks = std::max(most_blocks, n_blocks);
  }
  if (pool_.size() == 1 || n_query_blocks <= kFewQueryBlocks) {
    for (int64_t task = 0; task < n_tasks; ++task) call.attend_whole(task, 0);
  } else if (n_tasks < kTasksPerThread * pool_.size() && most_blocks > kBlocksPerChunk) {
    call.attend_split(most_blocks);
  } else {
    std::atomic<int64_t> next{n_tasks};  // of each head, the longest tasks go first
    pool_.run([&](int thread) {
      for (int64_t i = next.fetch_sub(1) - 1; i >= 0; i = next.fetch_sub(1) - 1) {
        call.attend_whole(i, thread);
      }
    });
  }
  return out;
}

}  // namespace limpid
