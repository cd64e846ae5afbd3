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
//    blocks too, in waves of kBlocksPerWave blocks. In a wave, threads first compute the partials
//    of its blocks, in any order, each in memory of its own. Then each task merges its partials
//    into its state, in order of position. A wave of 64 blocks is 4,096 positions, and the next
//    wave uses the same memory, so the memory of partials does not grow with the context.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/checked.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {
namespace {

constexpr int64_t kBlocksPerWave = 64;  // blocks whose partials are kept at once
constexpr int64_t kBlocksPerChunk = 4;  // blocks that a thread takes at a time
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

uint64_t head_block_bytes(DType dtype, int64_t head_dim) {
  LIMPID_CHECK(UnsupportedError, dtype == DType::kF32 || dtype == DType::kF16,
               "a KV cache holds f32 or f16, not {}", dtype_info(dtype).name);
  return tensor_bytes(dtype, Shape{kKvBlock, head_dim});
}

uint64_t times(uint64_t n, uint64_t n_bytes) {
  const auto total = checked_mul(n, n_bytes);
  LIMPID_CHECK(ShapeError, total.has_value(), "[kv] {} times {} bytes are too large", n, n_bytes);
  return *total;
}

// Of all layers and heads.
uint64_t block_bytes_of(const KvLayout& layout) {
  return times(static_cast<uint64_t>(Shape{layout.n_layers, layout.n_kv_heads}.n_elements()),
               head_block_bytes(layout.k_dtype, layout.head_dim) +
                   head_block_bytes(layout.v_dtype, padded_head_dim(layout.head_dim)));
}

}  // namespace

uint64_t CpuExecutor::kv_bytes(const KvLayout& layout) const {
  return times(static_cast<uint64_t>(layout.n_blocks), block_bytes_of(layout));
}

CpuKvStorage::CpuKvStorage(const KvLayout& layout)
    : KvStorage(layout),
      k_bytes_(head_block_bytes(layout.k_dtype, layout.head_dim)),
      v_bytes_(head_block_bytes(layout.v_dtype, padded_head_dim(layout.head_dim))),
      block_bytes_(block_bytes_of(layout)) {
  grow(layout.n_blocks);
}

void CpuKvStorage::grow(int64_t n_blocks) {
  const auto n_new = static_cast<uint64_t>(n_blocks) - blocks_.size();
  AlignedBuffer added(times(n_new, block_bytes_));
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
  // For each thread: scores and accumulators of a tile, then state and partial of its queries.
  const int64_t state = state_floats(kAttentionQueries, layout.head_dim);
  const int64_t floats = (attention_scratch_floats(layout.head_dim) + 2 * state + 15) / 16 * 16;
  if (floats > attention_floats_) {
    const auto buffer = [](int64_t n, int64_t n_floats) {
      return AlignedBuffer(tensor_bytes(DType::kF32, Shape{n, n_floats}));
    };
    AlignedBuffer scratch = buffer(pool_.size(), floats);
    const int64_t most_tasks = kTasksPerThread * pool_.size();
    attention_partials_ = buffer(most_tasks * (1 + kBlocksPerWave), state);
    attention_scratch_ = std::move(scratch);
    attention_floats_ = floats;
  }
  return storage;
}

float* CpuExecutor::attention_scratch(int thread) {
  return attention_scratch_.as<float>().data() + thread * attention_floats_;
}

struct CpuExecutor::AttentionCall {
  AttentionShape shape;
  CpuKvStorage& kv;
  int64_t layer;
  const StepInputs& inputs;
  std::span<const TokenTile> tiles;
  const float* q;
  float* out;

  int64_t group() const { return shape.n_heads / shape.n_kv_heads; }
  // A group of more than kAttentionQueries query heads is divided into several tasks.
  int64_t heads_per_task() const { return std::min(group(), kAttentionQueries); }
  int64_t tasks_per_group() const { return (group() + heads_per_task() - 1) / heads_per_task(); }
  int64_t n_tasks() const {
    return static_cast<int64_t>(tiles.size()) * shape.n_kv_heads * tasks_per_group();
  }
  int64_t most_queries() const {
    int64_t most = 0;
    for (const TokenTile& tile : tiles) most = std::max(most, tile.end - tile.begin);
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

    int64_t n_blocks() const {
      return (n_visible[static_cast<size_t>(n - 1)] + kKvBlock - 1) / kKvBlock;
    }
    // The first query that sees a position of `block`; the queries after it do too.
    int64_t first_to_see(int64_t block) const {
      int64_t i = 0;
      while (n_visible[static_cast<size_t>(i)] <= block * kKvBlock) ++i;
      return i;
    }
  };
  Queries queries(int64_t task) const {
    Queries result;
    const int64_t part = task % tasks_per_group();
    result.kv_head = task / tasks_per_group() % shape.n_kv_heads;
    const TokenTile& tile = tiles[static_cast<size_t>(task / tasks_per_group() / shape.n_kv_heads)];
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

  // Blocks that a thread takes at a time: those from `begin` to `end` of a task.
  struct Chunk {
    int64_t task = 0;
    Queries queries;
    int64_t begin = 0;
    int64_t end = 0;

    bool empty() const { return begin >= end; }
  };

  AttentionTile tile(const Queries& queries, float* scratch) const {
    return {queries.q.data(), queries.n_visible.data(),
            queries.n,        shape.head_dim,
            shape.scale,      kv.k_is_f16(),
            kv.v_is_f16(),    scratch};
  }
  const std::byte* keys(const Queries& queries, int64_t i) const {
    return kv.k_block(layer, inputs.block_of(queries.sequence, i * kKvBlock), queries.kv_head);
  }
  // Block `i` of the queries' sequence. What the thread reads next is prefetched meanwhile: the
  // block after it, or `after` (if any) when that would be `end`.
  KvBlockView block(const Queries& queries, int64_t i, int64_t end,
                    const std::byte* after = nullptr) const {
    const int64_t physical = inputs.block_of(queries.sequence, i * kKvBlock);
    return {keys(queries, i), kv.v_block(layer, physical, queries.kv_head),
            i + 1 < end ? keys(queries, i + 1) : after};
  }

  // Writes the results of queries that have seen all of their blocks.
  void finish(const Kernels& kernels, const Queries& queries, const AttentionState& state) const {
    for (int64_t i = 0; i < queries.n; ++i) {
      kernels.finish_attention(state.accumulator + i * padded_head_dim(shape.head_dim),
                               state.sum[i], shape.head_dim, queries.out[static_cast<size_t>(i)]);
    }
  }
};

void CpuExecutor::append(const AttentionCall& call, const float* k, const float* v) {
  const int64_t head_dim = call.shape.head_dim;
  const int64_t cols = call.shape.n_kv_heads * head_dim;
  const int64_t grain = std::max<int64_t>(1, kElementsToShare / cols);
  pool_.for_each(inputs_.n_tokens(), grain, [&](int64_t t) {
    const int64_t position = inputs_.positions[static_cast<size_t>(t)];
    const int64_t block = inputs_.block_of(inputs_.sequences[static_cast<size_t>(t)], position);
    for (int64_t h = 0; h < call.shape.n_kv_heads; ++h) {
      kernels_.append_kv(k + t * cols + h * head_dim, v + t * cols + h * head_dim,
                         position % kKvBlock, head_dim, call.kv.k_is_f16(), call.kv.v_is_f16(),
                         call.kv.k_block(call.layer, block, h),
                         call.kv.v_block(call.layer, block, h));
    }
  });
}

void CpuExecutor::attend_whole(const AttentionCall& call, int64_t task, int thread) {
  const int64_t head_dim = call.shape.head_dim;
  const AttentionCall::Queries queries = call.queries(task);
  float* scratch = attention_scratch(thread);
  float* states = scratch + attention_scratch_floats(head_dim);
  const AttentionState state = state_at(states, queries.n);
  const AttentionState partial = state_at(states + state_floats(queries.n, head_dim), queries.n);
  const AttentionTile tile = call.tile(queries, scratch);
  clear_state(state, queries.n, head_dim);
  for (int64_t b = 0; b < queries.n_blocks(); ++b) {
    kernels_.attend_block(tile, b, call.block(queries, b, queries.n_blocks()), partial);
    kernels_.merge_partial(state, partial, queries.first_to_see(b), queries.n, head_dim);
  }
  call.finish(kernels_, queries, state);
}

void CpuExecutor::attend_split(const AttentionCall& call) {
  const int64_t head_dim = call.shape.head_dim;
  const int64_t n_tasks = call.n_tasks();
  const int64_t floats = state_floats(call.most_queries(), head_dim);
  int64_t n_blocks = 0;
  for (int64_t task = 0; task < n_tasks; ++task) {
    n_blocks = std::max(n_blocks, call.queries(task).n_blocks());
  }
  float* states = attention_partials_.as<float>().data();
  float* partials = states + n_tasks * floats;
  constexpr int64_t kChunks = kBlocksPerWave / kBlocksPerChunk;
  for (int64_t wave = 0; wave < n_blocks; wave += kBlocksPerWave) {
    std::atomic<int64_t> next{0};
    const auto claim = [&]() -> AttentionCall::Chunk {  // an empty one after the last
      for (int64_t i = next.fetch_add(1); i < n_tasks * kChunks; i = next.fetch_add(1)) {
        AttentionCall::Chunk chunk{i / kChunks, call.queries(i / kChunks),
                                   wave + i % kChunks * kBlocksPerChunk};
        chunk.end = std::min(chunk.begin + kBlocksPerChunk, chunk.queries.n_blocks());
        if (!chunk.empty()) return chunk;
      }
      return {};
    };
    pool_.run([&](int thread) {
      for (AttentionCall::Chunk chunk = claim(), following; !chunk.empty(); chunk = following) {
        following = claim();  // before it is needed, so that its first block can be prefetched
        const AttentionTile tile = call.tile(chunk.queries, attention_scratch(thread));
        const std::byte* after =
            following.empty() ? nullptr : call.keys(following.queries, following.begin);
        for (int64_t b = chunk.begin; b < chunk.end; ++b) {
          float* memory = partials + (chunk.task * kBlocksPerWave + b - wave) * floats;
          kernels_.attend_block(tile, b, call.block(chunk.queries, b, chunk.end, after),
                                state_at(memory, chunk.queries.n));
        }
      }
    });
    pool_.for_each(n_tasks, 1, [&](int64_t task) {
      const AttentionCall::Queries queries = call.queries(task);
      const AttentionState state = state_at(states + task * floats, queries.n);
      if (wave == 0) clear_state(state, queries.n, head_dim);
      for (int64_t b = wave; b < std::min(wave + kBlocksPerWave, queries.n_blocks()); ++b) {
        float* memory = partials + (task * kBlocksPerWave + b - wave) * floats;
        kernels_.merge_partial(state, state_at(memory, queries.n), queries.first_to_see(b),
                               queries.n, head_dim);
      }
      if (wave + kBlocksPerWave >= n_blocks) call.finish(kernels_, queries, state);
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
  const auto work = [&](const TokenTile& tile) {
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
  const AttentionCall call{shape, storage, layer, inputs_, token_tiles_, data(q), data(out)};
  append(call, data(k), data(v));

  const int64_t n_tasks = call.n_tasks();
  int64_t n_query_blocks = 0;
  int64_t most_blocks = 0;  // of a task
  for (const TokenTile& tile : token_tiles_) {
    const int64_t last = inputs_.positions[static_cast<size_t>(tile.end - 1)];
    const int64_t n_blocks = last / kKvBlock + 1;
    n_query_blocks += n_blocks * (tile.end - tile.begin) * shape.n_heads;
    most_blocks = std::max(most_blocks, n_blocks);
  }
  if (pool_.size() == 1 || n_query_blocks <= kFewQueryBlocks) {
    for (int64_t task = 0; task < n_tasks; ++task) attend_whole(call, task, 0);
  } else if (n_tasks < kTasksPerThread * pool_.size() && most_blocks > kBlocksPerChunk) {
    attend_split(call);
  } else {
    std::atomic<int64_t> next{n_tasks};  // the longest tasks go first, and short ones fill the gaps
    pool_.run([&](int thread) {
      for (int64_t i = next.fetch_sub(1) - 1; i >= 0; i = next.fetch_sub(1) - 1) {
        attend_whole(call, i, thread);
      }
    });
  }
  return out;
}

}  // namespace limpid
