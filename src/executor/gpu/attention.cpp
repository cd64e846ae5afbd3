// Causal attention over the KV cache: how the outputs, and long contexts, are divided among groups.
#include <algorithm>

#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/gpu_kv_storage.h"
#include "executor/gpu/kernel_sources.h"

namespace limpid {
namespace {

// As in kernels/attention.cl.h.
constexpr int kItems = 128;              // of a group, also of append and tensor_combine
constexpr int64_t kAppended = 4;         // elements of an item of append
constexpr int64_t kSpanPositions = 256;  // that a group takes, where a context is shared out
constexpr int64_t kMostState = 2048;     // elements of a group's results

// Up to this many tokens a step is short of groups rather than of memory's speed: a long context is
// shared out, and each token has groups of its own.
constexpr int64_t kFewTokens = 16;
constexpr int64_t kGroupsOfUnit = 2;  // that run at the same time without waiting for each other
constexpr int64_t kMostParts = 2048;  // of a step's tokens together, which bounds their memory

// How the outputs are divided among groups; the results do not depend on it.
struct Tiling {
  int64_t heads;            // query heads of a group at most
  int64_t tokens_of_group;  // neighbouring ones, which read the same keys where they can
};

// For groups of up to `most_rows` outputs.
Tiling choose_tiling(int64_t n_tokens, int64_t n_sequences, int64_t group, int64_t most_rows) {
  const int64_t heads = std::min(group, most_rows);
  const int64_t of_one_sequence = n_tokens / std::max<int64_t>(n_sequences, 1);
  const int64_t tokens =
      n_tokens <= kFewTokens
          ? 1
          : std::clamp<int64_t>(of_one_sequence, 1, std::max<int64_t>(most_rows / heads, 1));
  return {heads, tokens};
}

// Rows of the parts of a step: of up to n_tokens tokens at up to n_positions positions, where they
// are most.
int64_t most_parts(int64_t n_tokens, int64_t n_positions, int64_t of_part) {
  const int64_t n_spans = gpu::groups(n_positions, of_part);
  if (n_spans <= 1) return 0;
  int64_t most = 0;
  for (int64_t n = 1; n <= std::min(n_tokens, kFewTokens); ++n)
    most = std::max(most, n * std::min(n_spans, kMostParts / n));
  return most;
}

// Of a row: the results of all heads and two numbers for each head. The queries are at most as wide
// as the widest activation.
uint64_t part_bytes(int64_t n_rows, int64_t widest, int64_t head_dim) {
  return tensor_bytes(DType::kF32, Shape{n_rows, widest + 2 * (widest / head_dim)});
}

}  // namespace

// How many groups share the context of a token: 1, or one for each part of its positions.
int64_t GpuExecutor::attention_parts(int64_t positions_of_part) const {
  const int64_t n_tokens = inputs_.n_tokens();
  if (n_tokens == 0 || n_tokens > kFewTokens) return 1;
  const int64_t n_parts = std::ranges::max(inputs_.positions) / positions_of_part + 1;
  return n_tokens * n_parts <= kMostParts ? n_parts : 1;
}

uint64_t GpuExecutor::most_parts_bytes(const StepSize& size) const {
  if (size.head_dim == 0) return 0;
  const int64_t of_part = has_tensor_attention(size.head_dim) ? kKvBlock : kSpanPositions;
  return part_bytes(most_parts(size.n_tokens, size.n_positions, of_part), size.widest,
                    size.head_dim);
}

// Room for the parts of a step's attention, before it begins. It grows with the context, part by
// part, by what is needed, so that `most_parts_bytes` is reached and not exceeded.
void GpuExecutor::reserve_parts() {
  if (least_head_dim_ == 0) return;
  int64_t n_parts = attention_parts(kSpanPositions);
  if (has_tensor_heads_) n_parts = std::max(n_parts, attention_parts(kKvBlock));
  if (n_parts == 1) return;
  make_room(parts_, part_bytes(inputs_.n_tokens() * n_parts, widest_, least_head_dim_),
            "parts of attention");
}

// Takes the rotations of q and k if they are waiting and use the same angles: the launch that puts
// the keys into the cache then rotates them too.
GpuExecutor::Appended GpuExecutor::take_appended(const Activation& q, const Activation& k,
                                                 int64_t head_dim) {
  const std::vector<Rotation>& all = waiting_.rotations;
  if (all.size() != 2 || all[0].y != &buffer(q) || all[1].y != &buffer(k) ||
      all[0].table != all[1].table || all[0].head_dim != head_dim || all[1].head_dim != head_dim)
    return {&buffer(q), &buffer(k), &buffer(q), 0, &buffer(q), &buffer(k)};
  const Angles& table = rope_tables_[static_cast<size_t>(all[0].table)];
  const Appended appended{all[0].x, all[1].x, table.device.get(), gpu::as_int(table.n_rot),
                          all[0].y, all[1].y};
  waiting_.rotations.clear();
  return appended;
}

// Puts keys and values into the cache, before `attend`.
void GpuExecutor::append(const AttentionKernels& kernels, const Activation& q, const Activation& k,
                         const Activation& v, const GpuKvStorage& storage, int64_t layer,
                         const AttentionShape& shape, Appended& appended) {
  const int64_t of_q = appended.n_rot > 0 ? shape.n_heads : 0;
  const int64_t n = (2 * shape.n_kv_heads + of_q) * shape.head_dim;  // of a token
  launch(*kernels.append, gpu::cover_rows(k.rows(), gpu::groups(n, kAppended), kItems), *appended.k,
         buffer(v), storage.buffer(), *step_, lists_.positions, lists_.sequences, lists_.table,
         lists_.table_begin, gpu::as_int(layer), gpu::as_int(storage.layout().n_layers),
         gpu::as_int(shape.n_kv_heads), gpu::as_int(shape.head_dim), *appended.q, gpu::as_int(of_q),
         *appended.angles, appended.n_rot, *appended.rotated_q, *appended.rotated_k);
  appended.q = &buffer(q);
  appended.n_rot = -1;  // done
}

Activation GpuExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                  KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  const auto& storage = static_cast<const GpuKvStorage&>(kv);
  const KvLayout& layout = storage.layout();
  check_attention(inputs_, q, k, v, layout, layer, shape);
  const AttentionKernels& kernels =
      attention_kernels(layout.k_dtype, layout.v_dtype, shape.head_dim);
  const bool on_tensor_cores = has_tensor_attention(shape.head_dim);
  const auto n_tokens = gpu::as_int(q.rows());
  const auto n_heads = gpu::as_int(shape.n_heads);
  const auto n_kv_heads = gpu::as_int(shape.n_kv_heads);
  const auto head_dim = gpu::as_int(shape.head_dim);
  const auto n_sequences = static_cast<int64_t>(inputs_.block_table_begin.size()) - 1;
  // Before the rotations are taken, so that it does not get the memory of what they read.
  Activation out = allocate(q.rows(), q.cols());
  Appended appended = take_appended(q, k, shape.head_dim);
  settle();
  // With few tokens, one of each sequence, `attend` puts their keys into the cache by itself.
  if (on_tensor_cores || n_tokens > kFewTokens ||
      std::ranges::adjacent_find(inputs_.sequences) != inputs_.sequences.end())
    append(kernels, q, k, v, storage, layer, shape, appended);
  const int32_t group = n_heads / n_kv_heads;
  const auto fits = [&](const AttentionKernels::Attend& attend) {
    return on_tensor_cores || attend.rows * shape.head_dim <= kMostState;
  };
  const auto n_parts = gpu::as_int(attention_parts(on_tensor_cores ? kKvBlock : kSpanPositions));
  const auto largest = std::find_if(kernels.attend.rbegin(), kernels.attend.rend() - 1, fits);
  const int64_t n_at_once = kGroupsOfUnit * device_->info().n_units;
  const Tiling tiling = !on_tensor_cores && n_tokens * n_parts * shape.n_heads <= n_at_once
                            ? Tiling{1, 1}  // all heads at the same time
                            : choose_tiling(n_tokens, n_sequences, group, largest->rows);
  const auto attend = std::ranges::find_if(kernels.attend, [&](const auto& each) {
    return each.rows >= tiling.heads * tiling.tokens_of_group;
  });
  const gpu::Buffer& parts = n_parts == 1 ? buffer(out) : *parts_;
  const int64_t of_heads = n_kv_heads * gpu::groups(group, tiling.heads);
  const int64_t of_tokens = gpu::groups(n_tokens, tiling.tokens_of_group);
  const gpu::Grid grid = {of_tokens * n_parts * of_heads, 1, attend->items};
  launch(*attend->kernel, grid, *appended.q, storage.buffer(), *step_, lists_.positions,
         lists_.sequences, lists_.table, lists_.table_begin, buffer(out), parts, n_tokens,
         gpu::as_int(layer), gpu::as_int(layout.n_layers), n_kv_heads, group, head_dim,
         gpu::as_int(tiling.tokens_of_group), n_parts, shape.scale, *appended.k, buffer(v),
         *appended.angles, appended.n_rot, *appended.rotated_q, *appended.rotated_k);
  if (n_parts > 1) {
    const gpu::Grid cover_heads = {q.rows() * n_heads, 1, kItems};
    const gpu::Grid cover_elements = gpu::cover_rows(q.rows(), q.cols(), kItems);
    launch(*kernels.combine, on_tensor_cores ? cover_heads : cover_elements, parts, *step_,
           lists_.positions, buffer(out), n_heads, head_dim, n_parts);
  }
  return out;
}

}  // namespace limpid
