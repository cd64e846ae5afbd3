// The kernels that each instruction set offers: kernel_list.h has the list, this header has their
// arguments. Arguments are plain data; ranges say which part a thread computes. Every result has
// the same bits for any split into ranges and for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/cpu/quantized_linear.h"
#include "executor/dropout.h"
#include "executor/unary_kind.h"
#include "tensor/dtype.h"

namespace limpid {

// y[t, out(r)] = sum_k w[r, k] * x[t, k] + bias[out(r)] for rows [row_begin, row_end). Sixteen
// lanes along k: lane l sums k = l, l + 16, … in order, then the lanes are added in a fixed tree,
// then the bias. With products of bf16, lane l sums the pairs k = 2 l, 2 l + 1 of every 32 columns,
// the second number of a pair before the first.
struct FloatLinearTask {
  DType type = DType::kF32;           // of `weight`: kF32, kF16 or kBF16
  DType products = DType::kF32;       // or kBF16, for weights of bf16
  const std::byte* weight = nullptr;  // [rows, cols], row-major without gaps
  int64_t first_row = 0;              // output of the weight's row 0, before pairs are split
  int64_t cols = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  // > 0: the rows of each head of this many are interleaved pairs; the outputs are half-split.
  int64_t interleaved_head_dim = 0;
  const float* x = nullptr;  // as pack_tokens writes it; one token of f32 may be plain [cols]
  int64_t n_tokens = 0;
  float* y = nullptr;  // [n_tokens, y_stride]
  int64_t y_stride = 0;
  const float* bias = nullptr;  // or null
  float* scratch = nullptr;     // of this thread: a panel of rows that stays in its L2 cache
  int64_t scratch_floats = 0;
  // Of one token: into how many parts (2 or 4) a range is cut, whose rows are read side by side,
  // each part in a stream of its own, without software prefetching. 0: neighbouring rows are read
  // together, and prefetched.
  int n_streams = 0;
};
// Tokens that threads pack together: whole tiles of every instruction set.
inline constexpr int64_t kFloatTokenGrain = 24;
// Floats that n_tokens of `cols` columns take, packed for products of f32, or of bf16, of which two
// lie in a float.
constexpr int64_t packed_tokens_floats(DType products, int64_t n_tokens, int64_t cols) {
  const int64_t step = products == DType::kBF16 ? 32 : 16;
  return n_tokens * ((cols + step - 1) / step * 16);
}

// Elements of a block of block_largest.
inline constexpr int64_t kBestBlock = 64;

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
// Keys and values are read, and widened from f16, once for all queries of a tile. More than 48 gain
// nothing on AMD Zen 4.
inline constexpr int64_t kAttentionQueries = 48;

constexpr int64_t padded_head_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }
// The scores of one tile, and the keys or the values of a block as f32.
constexpr int64_t attention_scratch_floats(int64_t head_dim) {
  return 64 * (kAttentionQueries + padded_head_dim(head_dim));
}

// The state of a query after some blocks: the largest score, the sum of exp(score - max), and the
// sum of exp(score - max) * V, [padded_head_dim]. Starts as (-inf, 0, 0).
struct AttentionState {
  float* max = nullptr;          // [n]
  float* sum = nullptr;          // [n]
  float* accumulator = nullptr;  // [n, padded_head_dim]
};

// The left operand of a product: element (m, k) is x[m * stride + k], or x[k * stride + m] when
// `transposed`.
struct LeftMatrix {
  const float* x = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  bool transposed = false;
};

// y = left * right, or y += left * right.
struct MatrixProduct {
  const void* right = nullptr;  // [depth, right_stride], or transposed: [cols, right_stride]
  int64_t right_stride = 0;
  int64_t cols = 0;
  float* y = nullptr;  // [rows, cols]; overlaps neither operand
  bool add = false;
  DType right_type = DType::kF32;  // or kF16 or kBF16
  bool right_transposed = false;
  const float* bias = nullptr;  // [cols], or null: added to every row, unless `add`
};

// Packs rows [row_begin, row_end) of a part of the left operand.
struct PackTask : LeftMatrix {
  int64_t row_begin = 0;  // a multiple of kLeftRowGrain
  int64_t row_end = 0;
  float* packed = nullptr;  // depth floats for each row, the rows rounded up to kLeftRowGrain
};
// Rows that a thread packs or multiplies together: whole tiles of every instruction set.
inline constexpr int64_t kLeftRowGrain = 24;

// Rows [row_begin, row_end) and columns [col_begin, col_end) of a product.
struct MultiplyTask : MatrixProduct {
  const float* left = nullptr;  // as pack_left writes it: the rows from row 0 on
  int64_t depth = 0;
  int64_t row_begin = 0;  // a multiple of kLeftRowGrain
  int64_t row_end = 0;
  int64_t col_begin = 0;  // a multiple of kRightColGrain
  int64_t col_end = 0;
  float* scratch = nullptr;  // of this thread, kMultiplyScratch floats
};
inline constexpr int64_t kRightColGrain = 32;
// A panel of the right operand, 32 KiB: it stays in the L1 cache.
inline constexpr int64_t kMultiplyDepth = 256;
inline constexpr int64_t kMultiplyScratch = kMultiplyDepth * kRightColGrain;

// n_rows rows of `cols` elements.
struct NormGradientTask {
  const float* x = nullptr;
  const float* dy = nullptr;
  const float* weight = nullptr;  // [cols]
  int64_t n_rows = 0;
  int64_t cols = 0;
  float eps = 0;
  bool centred = false;  // layer_norm
  float* dx = nullptr;
  float* mean = nullptr;          // [n_rows], 0 unless centred
  float* inverse_root = nullptr;  // [n_rows]
};

// Pointers are to the first token of the sequence and the first column of the head(s). The forward
// op uses only q, k, v and out; the other pointers are null.
struct AttentionGradientTask {
  const float* q = nullptr;  // [n_tokens, q_stride], as y, dy, dq
  const float* k = nullptr;  // [n_tokens, kv_stride], as v, dk, dv
  const float* v = nullptr;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* out = nullptr;  // as y
  int64_t n_tokens = 0;
  int64_t q_stride = 0;
  int64_t kv_stride = 0;
  int64_t head_dim = 0;
  int64_t group = 0;  // query heads
  float scale = 0;
  float* scratch = nullptr;  // attention_gradient_floats(n_tokens, head_dim)
  // The probabilities of token t and query head h of this task are row dropout_row + t *
  // dropout_step + h of the mask; the column is the position of the key.
  Dropout dropout;
  int64_t dropout_row = 0;
  int64_t dropout_step = 0;
};
inline constexpr int64_t kGradientQueries = 96;  // queries that go through the keys together
inline constexpr int64_t kGradientKeys = 96;
[[gnu::always_inline]] constexpr int64_t padded_keys(int64_t n_tokens) {
  return (n_tokens + kGradientKeys - 1) / kGradientKeys * kGradientKeys;
}
// K and V transposed, the queries and their dy transposed, one strip of probabilities, two blocks
// of score gradients, two numbers for each query.
constexpr int64_t attention_gradient_floats(int64_t n_tokens, int64_t head_dim) {
  return 2 * head_dim * padded_keys(n_tokens) + 2 * head_dim * kGradientQueries +
         kGradientQueries * padded_keys(n_tokens) + 2 * kGradientQueries * kGradientKeys +
         2 * kGradientQueries;
}

struct SoftmaxSums {
  float largest = 0;
  float sum = 0;
};

// The kernels of one instruction set, as pointers.
struct Kernels {
// A type and a name cannot be in parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define LIMPID_KERNEL(result, name, parameters) result(*name) parameters;
#include "executor/cpu/kernel_list.h"
};

#if defined(LIMPID_ISA)
// The same kernels as functions, in the namespace of the instruction set that is being compiled.
// kernels/ defines them.
namespace LIMPID_ISA {
#define LIMPID_KERNEL(result, name, parameters) result name parameters;
#include "executor/cpu/kernel_list.h"

extern const Kernels kKernels;
}  // namespace LIMPID_ISA
#endif

}  // namespace limpid
