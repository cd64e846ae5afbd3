// The kernels that each instruction set offers, and how one is chosen. Arguments are plain data;
// ranges say which part a thread computes. Every result is the same bits for any split into ranges
// and for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace limpid {

// y[t, out(r)] = sum_k w[r, k] * x[t, k] + bias[out(r)] for rows [row_begin, row_end). Sixteen
// lanes along k: lane l sums k = l, l + 16, … in order, then the lanes are added in a fixed tree,
// then the bias.
struct FloatLinearTask {
  const std::byte* weight = nullptr;  // [rows, cols], row-major without gaps
  int64_t first_row = 0;              // output of the weight's row 0, before pairs are split
  int64_t cols = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  // > 0: rows of each head of so many are interleaved pairs; what is written is half-split.
  int64_t interleaved_head_dim = 0;
  const float* x = nullptr;  // what pack_tokens wrote; of one token, [cols] will do
  int64_t n_tokens = 0;
  float* y = nullptr;  // [n_tokens, y_stride]
  int64_t y_stride = 0;
  const float* bias = nullptr;  // or null
  float* scratch = nullptr;     // of this thread, kLinearScratch floats
};
// Floats, half a MiB: a panel of rows that stays in the L2 cache.
inline constexpr int64_t kLinearScratch = 128 * 1024;

// Tokens that threads pack together: whole tiles of every instruction set.
inline constexpr int64_t kFloatTokenGrain = 24;
// Floats that n_tokens of `cols` columns take, packed.
constexpr int64_t packed_tokens_floats(int64_t n_tokens, int64_t cols) {
  return n_tokens * ((cols + 15) / 16 * 16);
}

// Keys and values of one head in one block of 64 positions: K transposed [head_dim, 64], V [64,
// v_stride] with v_stride = head_dim rounded up to 16.
struct KvBlockView {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  const std::byte* next_k = nullptr;  // of the block that the caller attends to next, if any
};

// Queries that share a KV head: `n_queries` rows of head_dim floats, each with the number of keys
// that it sees.
struct AttentionTile {
  const float* const* q = nullptr;     // [n_queries]
  const int32_t* n_visible = nullptr;  // [n_queries], keys 0 … n_visible - 1; non-decreasing
  int64_t n_queries = 0;               // <= kAttentionQueries
  int64_t head_dim = 0;
  float scale = 0;
  bool k_is_f16 = false;
  bool v_is_f16 = false;
  float* scratch = nullptr;  // attention_scratch_floats(head_dim), of this thread
};
inline constexpr int64_t kAttentionQueries = 24;

constexpr int64_t padded_head_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }
// Scores and accumulators of one tile.
constexpr int64_t attention_scratch_floats(int64_t head_dim) {
  return kAttentionQueries * (64 + padded_head_dim(head_dim));
}

// What a query knows after some blocks: the largest score, the sum of exp(score - max), and the sum
// of exp(score - max) * V, [padded_head_dim]. Starts as (-inf, 0, 0).
struct AttentionState {
  float* max = nullptr;          // [n]
  float* sum = nullptr;          // [n]
  float* accumulator = nullptr;  // [n, padded_head_dim]
};

enum class UnaryFunction : uint8_t { kSilu, kGeluTanh, kGeluErf, kRelu, kExp };
inline constexpr int kNUnaryFunctions = 5;

struct Kernels {
  // -- linear --
  void (*linear_f32)(const FloatLinearTask& task);
  void (*linear_f16)(const FloatLinearTask& task);
  void (*linear_bf16)(const FloatLinearTask& task);
  // x [n_tokens, cols] as these read it: tiles of as many tokens T as a register tile has (the last
  // one may have fewer), each [cols / 16][T][16], the last columns padded with 0. So a kernel reads
  // one stream, whatever the stride of x. Packs tokens [token_begin, token_end), bounds being
  // multiples of kFloatTokenGrain or the end.
  void (*pack_tokens)(const float* x, int64_t n_tokens, int64_t cols, int64_t token_begin,
                      int64_t token_end, float* packed);

  // -- attention --
  // One block's partial of every query that sees some of it; `block` counts from position 0.
  // Queries that see none keep their entries. `partial` is overwritten.
  void (*attend_block)(const AttentionTile& tile, int64_t block, const KvBlockView& kv,
                       const AttentionState& partial);
  // Merges the partial of the next block into `state`, for queries [begin, end).
  void (*merge_partial)(const AttentionState& state, const AttentionState& partial, int64_t begin,
                        int64_t end, int64_t head_dim);
  // out[i] = accumulator[i] / sum, for one query.
  void (*finish_attention)(const float* accumulator, float sum, int64_t head_dim, float* out);
  // k, v [head_dim] of one head at `slot` (0 … 63) of its block.
  void (*append_kv)(const float* k, const float* v, int64_t slot, int64_t head_dim, bool k_is_f16,
                    bool v_is_f16, std::byte* k_block, std::byte* v_block);

  // -- rows --
  void (*rms_norm)(const float* x, const float* weight, int64_t n_rows, int64_t cols, float eps,
                   float* y);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int64_t n_rows,
                     int64_t cols, float eps, float* y);
  // One token: n_heads heads of head_dim, cos and sin [n_rot / 2] of its position.
  void (*rope)(const float* x, const float* cos, const float* sin, int64_t n_heads,
               int64_t head_dim, int64_t n_rot, float* y);

  // -- elements --
  void (*add)(const float* a, const float* b, int64_t n, float* y);
  void (*scale)(const float* x, float factor, int64_t n, float* y);
  void (*unary[kNUnaryFunctions])(const float* x, int64_t n, float* y);
  void (*swiglu)(const float* gate, const float* up, int64_t n, float* y);
  void (*f32_to_f16)(const float* x, int64_t n, uint16_t* y);
  void (*f16_to_f32)(const uint16_t* x, int64_t n, float* y);
  void (*bf16_to_f32)(const uint16_t* x, int64_t n, float* y);

  // The primitives of lanes-inl.h on 16 floats a, b, c each, 16 results per primitive: what tests
  // compare.
  void (*lanes_probe)(const float* a, const float* b, const float* c, float* out);
};
inline constexpr int kLanesProbeResults = 15;

}  // namespace limpid
