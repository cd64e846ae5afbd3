#include <algorithm>

#include "base/check.h"
#include "executor/check_attention.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/gpu_kv_storage.h"
#include "executor/gpu/kernel_sources.h"

namespace limpid {
namespace {

// As in kernels/attention.cl.h.
constexpr int kItems = 128;  // of a group
constexpr int64_t kSpanPositions = 256;
constexpr int64_t kMostState = 2048;  // elements of a group's results

// Up to this many tokens a step is short of groups rather than of memory's speed: a long context is
// shared out, and each token has groups of its own.
constexpr int64_t kFewTokens = 16;
constexpr int64_t kGroupsOfUnit = 2;  // that run at the same time without waiting for each other
constexpr int64_t kMostParts = 2048;  // of a step's tokens together, which bounds their memory

// How the outputs are dealt to groups; the results do not depend on it.
struct Tiling {
  size_t variant;           // of kAttendRows
  int64_t rows;             // outputs of a group at most
  int64_t heads;            // query heads of a group at most
  int64_t tokens_of_group;  // neighbouring ones, which read the same keys where they can
};

Tiling choose_tiling(int64_t n_tokens, int64_t n_sequences, int64_t group, int64_t head_dim) {
  constexpr auto& kRows = gpu::kAttendRows;
  size_t largest = 1;
  while (largest + 1 < std::size(kRows) && kRows[largest + 1] * head_dim <= kMostState) ++largest;
  const int64_t most = kRows[largest];
  const int64_t heads = std::min(group, most);
  const int64_t of_one_sequence = n_tokens / std::max<int64_t>(n_sequences, 1);
  const int64_t tokens =
      n_tokens <= kFewTokens
          ? 1
          : std::clamp<int64_t>(of_one_sequence, 1, std::max<int64_t>(most / heads, 1));
  size_t variant = 1;
  while (kRows[variant] < heads * tokens) ++variant;
  return {variant, kRows[variant], heads, tokens};
}

// Rows of the parts of a step: of up to n_tokens tokens at up to n_positions positions, where they
// are most.
int64_t most_parts(int64_t n_tokens, int64_t n_positions) {
  const int64_t n_spans = (n_positions + kSpanPositions - 1) / kSpanPositions;
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

// How many groups share the context of a token: 1, or one for each span of positions.
int64_t GpuExecutor::attention_parts() const {
  const int64_t n_tokens = inputs_.n_tokens();
  if (n_tokens == 0 || n_tokens > kFewTokens) return 1;
  const int64_t n_spans = std::ranges::max(inputs_.positions) / kSpanPositions + 1;
  return n_tokens * n_spans <= kMostParts ? n_spans : 1;
}

uint64_t GpuExecutor::most_parts_bytes(const StepSize& size) {
  if (size.head_dim == 0) return 0;
  return part_bytes(most_parts(size.n_tokens, size.n_positions), size.widest, size.head_dim);
}

// Room for the parts of a step's attention, before it begins. It grows with the context, every 256
// positions, by what is needed, so that `most_parts_bytes` is reached and not exceeded.
void GpuExecutor::reserve_parts() {
  const int64_t n_parts = attention_parts();
  if (least_head_dim_ == 0 || n_parts == 1) return;
  const uint64_t n_bytes = part_bytes(inputs_.n_tokens() * n_parts, widest_, least_head_dim_);
  if (parts_ && parts_->n_bytes() >= n_bytes) return;
  parts_.reset();  // first, because both together are not planned
  parts_ = device_->allocate(n_bytes, "parts of attention");
}

// Takes the rotations of q and k when they wait and turn by the same angles: the launch that puts
// the keys into the cache does that too.
GpuExecutor::Appended GpuExecutor::take_appended(const Activation& q, const Activation& k,
                                                 int64_t head_dim) {
  const std::vector<Rotation>& all = waiting_.rotations;
  if (all.size() != 2 || all[0].y != &buffer(q) || all[1].y != &buffer(k) ||
      all[0].table != all[1].table || all[0].head_dim != head_dim || all[1].head_dim != head_dim)
    return {&buffer(q), &buffer(k), &buffer(q), 0, &buffer(q), &buffer(k)};
  const Angles& table = rope_tables_[static_cast<size_t>(all[0].table)];
  const Appended appended{all[0].x, all[1].x, table.device.get(), static_cast<int32_t>(table.n_rot),
                          all[0].y, all[1].y};
  waiting_.rotations.clear();
  return appended;
}

Activation GpuExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                  KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  const auto& storage = static_cast<const GpuKvStorage&>(kv);
  const KvLayout& layout = storage.layout();
  check_attention(inputs_, q, k, v, layout, layer, shape);
  const AttentionKernels& kernels = attention_kernels(layout.k_dtype, layout.v_dtype);
  const auto n_tokens = static_cast<int32_t>(q.rows());
  const auto layer_number = static_cast<int32_t>(layer);
  const auto n_layers = static_cast<int32_t>(layout.n_layers);
  const auto n_kv_heads = static_cast<int32_t>(shape.n_kv_heads);
  const auto head_dim = static_cast<int32_t>(shape.head_dim);
  const auto n_sequences = static_cast<int64_t>(inputs_.block_table_begin.size()) - 1;
  // Before the rotations are taken, so that it does not get the memory of what they read.
  Activation out = allocate(q.rows(), q.cols());
  Appended appended = take_appended(q, k, shape.head_dim);
  settle();
  // With few tokens, one of each sequence, `attend` puts their keys into the cache by itself.
  if (n_tokens > kFewTokens ||
      std::ranges::adjacent_find(inputs_.sequences) != inputs_.sequences.end()) {
    const int64_t n_heads = appended.n_rot > 0 ? shape.n_heads : 0;       // of q
    const int64_t n = (2 * shape.n_kv_heads + n_heads) * shape.head_dim;  // of a token
    launch(*kernels.append, gpu::cover_rows(k.rows(), n, kItems), *appended.k, buffer(v),
           storage.buffer(), *step_, lists_.positions, lists_.sequences, lists_.table,
           lists_.table_begin, layer_number, n_layers, n_kv_heads, head_dim, *appended.q,
           static_cast<int32_t>(n_heads), *appended.angles, appended.n_rot, *appended.rotated_q,
           *appended.rotated_k);
    appended.q = &buffer(q);
    appended.n_rot = -1;  // done
  }
  const auto group = static_cast<int32_t>(shape.n_heads / shape.n_kv_heads);
  const auto n_parts = static_cast<int32_t>(attention_parts());
  const Tiling tiling =
      n_tokens * n_parts * shape.n_heads <= kGroupsOfUnit * device_->info().n_units
          ? Tiling{0, 1, 1, 1}  // all heads at the same time
          : choose_tiling(n_tokens, n_sequences, group, shape.head_dim);
  const gpu::Buffer& parts = n_parts == 1 ? buffer(out) : *parts_;
  const gpu::Grid grid = {
      (n_tokens + tiling.tokens_of_group - 1) / tiling.tokens_of_group * n_parts,
      n_kv_heads * ((group + tiling.heads - 1) / tiling.heads), kItems};
  launch(*kernels.attend[tiling.variant], grid, *appended.q, storage.buffer(), *step_,
         lists_.positions, lists_.sequences, lists_.table, lists_.table_begin, buffer(out), parts,
         n_tokens, layer_number, n_layers, n_kv_heads, group, head_dim,
         static_cast<int32_t>(tiling.tokens_of_group), n_parts, shape.scale, *appended.k, buffer(v),
         *appended.angles, appended.n_rot, *appended.rotated_q, *appended.rotated_k);
  if (n_parts > 1) {
    launch(*kernels.combine, gpu::cover_rows(q.rows(), q.cols(), kItems), parts, *step_,
           lists_.positions, buffer(out), static_cast<int32_t>(shape.n_heads), head_dim, n_parts);
  }
  return out;
}

}  // namespace limpid
