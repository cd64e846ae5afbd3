// Causal attention over blocks of 64 positions. attend_block computes the partial result of a block
// (max, sum, accumulator) for one query or many; merge_partial merges it into the state of the
// earlier blocks. Decode and prefill call the same two functions in the same order, so they agree
// to the bit. executor/cpu/attention.cpp explains the idea.
//
// A partial is two products of matrices with a softmax between them:
//   scores [n_queries, 64] = q [n_queries, head_dim] x K [head_dim, 64]
//   accumulator [n_queries, head_dim] = exp(scores - max) [n_queries, 64] x V [64, head_dim]
// K is stored transposed, so that both have the form c[q][n] = sum over m of a[q][m] b[m][n], with
// lanes along n: one number of `a` is broadcast and multiplies 16 neighbours in n. So no sum
// crosses lanes, and every element is summed in order of m.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/math-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

constexpr int kBlock = 64;
constexpr int kBlockVectors = kBlock / kLanes;

// The size of a register tile: kQueries queries x kVectors vectors of sixteen accumulators.
#if LIMPID_ISA_scalar
constexpr int kQueries = 1, kVectors = 1;
#elif defined(__AVX512F__)
constexpr int kQueries = 6, kVectors = 4;
#else
constexpr int kQueries = 6, kVectors = 1;
#endif

// The factor b of a product: rows of `stride` elements.
template <class S>
struct Block {
  const typename S::Element* data;
  int64_t stride;
};

// Memory that is needed after a product, prefetched while the product is computed: n_lines lines of
// 64 bytes for each m of each tile, until `end`. All at once would occupy the few fill buffers of
// the first-level cache, and the product would wait for one. The lines go to the second-level
// cache, which has more such buffers: on an AMD Zen 4, decode at a depth of 3,500 reads keys and
// values a quarter faster than with lines that go to the first level.
struct Ahead {
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;
  int64_t n_lines = 0;

  // Spreads n_bytes at `memory` (or null) over n_steps steps.
  Ahead(const std::byte* memory, int64_t n_bytes, int64_t n_steps) {
    if (memory == nullptr) return;
    at = memory;
    end = memory + n_bytes;
    n_lines = (n_bytes / 64 + n_steps - 1) / n_steps;
  }
};

// c[q][n] = sum over m, in order, of a[q][m] * b[m][n], starting from 0, for kQ rows q and kV
// vectors of n. With kWidens the vectors of b are stored without gaps in `wide`.
template <class S, int kQ, int kV, bool kWidens = false>
void product_tile(const float* const* a, int64_t n_m, Block<S> b, Ahead& ahead, float* c,
                  int64_t c_stride, float* wide = nullptr) {
  F32x16 sums[kQ][kV];
#pragma GCC unroll 8
  for (int q = 0; q < kQ; ++q) {
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) sums[q][v] = zero();
  }
  const auto* data = b.data;
  const std::byte* at = ahead.at;
  const int64_t n_lines = at < ahead.end ? ahead.n_lines : 0;
  for (int64_t m = 0; m < n_m; ++m, data += b.stride) {
    for (int64_t i = 0; i < n_lines; ++i, at += 64) __builtin_prefetch(at, 0, 2);
    F32x16 row[kV];
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) row[v] = S::load(data + v * kLanes);
    if constexpr (kWidens) {
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) store(row[v], wide + v * kLanes);
      wide += kV * kLanes;
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQ; ++q) {
      const F32x16 factor = broadcast(a[q][m]);
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) sums[q][v] = add_product(factor, row[v], sums[q][v]);
    }
  }
  ahead.at = at;
#pragma GCC unroll 8
  for (int q = 0; q < kQ; ++q) {
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) store(sums[q][v], c + q * c_stride + v * kLanes);
  }
}

// The same for n_a rows: tiles of kQ rows, then one smaller tile for the remaining rows.
template <class S, int kQ, int kV>
LIMPID_INLINE void product_columns(const float* const* a, int64_t n_a, int64_t n_m, Block<S> b,
                                   Ahead& ahead, float* c, int64_t c_stride) {
  for (; n_a >= kQ; n_a -= kQ, a += kQ, c += kQ * c_stride) {
    product_tile<S, kQ, kV>(a, n_m, b, ahead, c, c_stride);
  }
  if constexpr (kQ > 1) {
    if (n_a > 0) product_columns<S, kQ - 1, kV>(a, n_a, n_m, b, ahead, c, c_stride);
  }
}

// The same for n_a rows of a and kV vectors. If b holds f16 and there are several tiles of rows,
// the first one converts b to f32 for all of them (into `wide`, which has room for it). The
// conversions and stores of a tile take place beside its multiplications, which bound it.
template <class S, int kV>
LIMPID_INLINE void product_vectors(const float* const* a, int64_t n_a, int64_t n_m, Block<S> b,
                                   Ahead& ahead, float* wide, float* c, int64_t c_stride) {
  if constexpr (sizeof(typename S::Element) < sizeof(float)) {
    if (n_a > kQueries) {
      product_tile<S, kQueries, kV, true>(a, n_m, b, ahead, c, c_stride, wide);
      const Block<StoredF32> widened{wide, kV * kLanes};
      return product_columns<StoredF32, kQueries, kV>(a + kQueries, n_a - kQueries, n_m, widened,
                                                      ahead, c + kQueries * c_stride, c_stride);
    }
  }
  product_columns<S, kQueries, kV>(a, n_a, n_m, b, ahead, c, c_stride);
}

// The same for n_vectors vectors, kVectors at a time.
template <class S>
void product(const float* const* a, int64_t n_a, int64_t n_m, Block<S> b, int64_t n_vectors,
             Ahead& ahead, float* wide, float* c, int64_t c_stride) {
  for (; n_vectors >= kVectors; n_vectors -= kVectors, b.data += kVectors * kLanes) {
    product_vectors<S, kVectors>(a, n_a, n_m, b, ahead, wide, c, c_stride);
    c += kVectors * kLanes;
  }
  if constexpr (kVectors > 1) {
    for (; n_vectors > 0; --n_vectors, b.data += kLanes, c += kLanes) {
      product_vectors<S, 1>(a, n_a, n_m, b, ahead, wide, c, c_stride);
    }
  }
}

// The same for b of either type. Meanwhile the other half of the block, or the half at `next`, as
// large as b, is prefetched.
void product(const float* const* a, int64_t n_a, int64_t n_m, const std::byte* b, bool b_is_f16,
             int64_t b_stride, int64_t n_vectors, const std::byte* next, float* wide, float* c,
             int64_t c_stride) {
  const int64_t n_tiles = (n_a + kQueries - 1) / kQueries * ((n_vectors + kVectors - 1) / kVectors);
  Ahead ahead(next, n_m * b_stride * (b_is_f16 ? 2 : 4), n_tiles * n_m);
  if (b_is_f16) {
    const Block<StoredF16> block{reinterpret_cast<const uint16_t*>(b), b_stride};
    product(a, n_a, n_m, block, n_vectors, ahead, wide, c, c_stride);
  } else {
    const Block<StoredF32> block{reinterpret_cast<const float*>(b), b_stride};
    product(a, n_a, n_m, block, n_vectors, ahead, wide, c, c_stride);
  }
}

alignas(64) constexpr float kLaneIndex[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                  8, 9, 10, 11, 12, 13, 14, 15};

// Of the 64 scores of one query, those from n_visible on become -inf. Returns the max of score *
// scale.
LIMPID_INLINE float largest_score(float* scores, int64_t n_visible, float scale) {
  F32x16 values[kBlockVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kBlockVectors; ++v) {
    values[v] = load(scores + v * kLanes);
    if (n_visible < kBlock) {
      const F32x16 left = broadcast(static_cast<float>(n_visible - v * kLanes));
      values[v] = select_less(load(kLaneIndex), left, values[v], broadcast(-__builtin_inff()));
      store(values[v], scores + v * kLanes);
    }
  }
  F32x16 largest = broadcast(-__builtin_inff());
#pragma GCC unroll 4
  for (int v = 0; v < kBlockVectors; ++v) largest = max(values[v], largest);
  return reduce_max(largest) * scale;
}

// Replaces the 64 scores of one query by exp(score * scale - max), which is exactly 0 for -inf, and
// returns their sum. score * scale - max is rounded once, so it may differ from 0 by the rounding
// of max; the division by the sum cancels that.
LIMPID_INLINE float soften(float* scores, float scale, float max) {
  F32x16 sum = zero();
#pragma GCC unroll 4
  for (int v = 0; v < kBlockVectors; ++v) {
    float* at = scores + v * kLanes;
    const F32x16 p = exp(fma(load(at), broadcast(scale), broadcast(-max)));
    store(p, at);
    sum = add(sum, p);
  }
  return reduce_add(sum);
}

LIMPID_INLINE int64_t visible_in_block(const AttentionTile& tile, int64_t query, int64_t block) {
  const int64_t n = tile.n_visible[query] - block * kBlock;
  return n < kBlock ? n : kBlock;
}

}  // namespace

void attend_block(const AttentionTile& tile, int64_t block, const KvBlockView& kv,
                  const AttentionState& partial) {
  const int64_t padded = padded_head_dim(tile.head_dim);
  int64_t first = 0;  // earlier queries see nothing of this block
  while (first < tile.n_queries && visible_in_block(tile, first, block) <= 0) ++first;
  if (first == tile.n_queries) return;

  float* scores = tile.scratch + first * kBlock;
  const int64_t n = tile.n_queries - first;
  const int64_t n_vectors =
      (visible_in_block(tile, tile.n_queries - 1, block) + kLanes - 1) / kLanes;
  float* wide = tile.scratch + kAttentionQueries * kBlock;
  product(tile.q + first, n, tile.head_dim, kv.k, tile.k_is_f16, kBlock, n_vectors, kv.v, wide,
          scores, kBlock);
  const float* rows[kAttentionQueries];
  for (int64_t i = first; i < tile.n_queries; ++i) {
    float* row = tile.scratch + i * kBlock;
    rows[i] = row;
    partial.max[i] = largest_score(row, visible_in_block(tile, i, block), tile.scale);
  }
  for (int64_t i = first; i < tile.n_queries; ++i) {
    partial.sum[i] = soften(tile.scratch + i * kBlock, tile.scale, partial.max[i]);
  }
  // Queries that see the same keys go together. Keys that a query does not see are skipped, not
  // multiplied by 0, because their values may be infinite or NaN.
  for (int64_t i = first; i < tile.n_queries;) {
    const int64_t visible = visible_in_block(tile, i, block);
    int64_t end = i + 1;
    while (end < tile.n_queries && visible_in_block(tile, end, block) == visible) ++end;
    product(rows + i, end - i, visible, kv.v, tile.v_is_f16, padded, padded / kLanes, kv.next_k,
            wide, partial.accumulator + i * padded, padded);
    i = end;
  }
}

void merge_partial(const AttentionState& state, const AttentionState& partial, int64_t begin,
                   int64_t end, int64_t head_dim) {
  float keep[kAttentionQueries];
  float take[kAttentionQueries];
  for (int64_t i = begin; i < end; i += kLanes) {  // a lane for each query
    const F32x16 old_max = load_at(state.max, i, end);
    const F32x16 new_max = load_at(partial.max, i, end);
    const F32x16 both_max = max(old_max, new_max);
    const F32x16 k = exp(sub(old_max, both_max));
    const F32x16 t = exp(sub(new_max, both_max));
    const F32x16 new_sum = mul(load_at(partial.sum, i, end), t);
    store_at(fma(load_at(state.sum, i, end), k, new_sum), state.sum, i, end);
    store_at(both_max, state.max, i, end);
    store_at(k, keep, i, end);
    store_at(t, take, i, end);
  }
  const int64_t padded = padded_head_dim(head_dim);
  for (int64_t i = begin; i < end; ++i) {
    float* to = state.accumulator + i * padded;
    const float* from = partial.accumulator + i * padded;
    for (int64_t d = 0; d < padded; d += kLanes) {
      const F32x16 added = mul(load(from + d), broadcast(take[i]));
      store(fma(load(to + d), broadcast(keep[i]), added), to + d);
    }
  }
}

void finish_attention(const float* accumulator, float sum, int64_t head_dim, float* out) {
  const F32x16 divisor = broadcast(sum);
  int64_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) store(div(load(accumulator + d), divisor), out + d);
  if (d < head_dim) store_partial(div(load(accumulator + d), divisor), out + d, head_dim - d);
}

void append_kv(const float* k, const float* v, int64_t slot, int64_t head_dim, bool k_is_f16,
               bool v_is_f16, std::byte* k_block, std::byte* v_block) {
  const int64_t padded = padded_head_dim(head_dim);
  if (k_is_f16) {
    auto* column = reinterpret_cast<uint16_t*>(k_block) + slot;
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t n = head_dim - d < kLanes ? head_dim - d : kLanes;
      uint16_t halves[kLanes];
      store_f16(load_partial(k + d, n), halves);
      for (int64_t i = 0; i < n; ++i) column[(d + i) * kBlock] = halves[i];
    }
  } else {
    float* column = reinterpret_cast<float*>(k_block) + slot;
    for (int64_t d = 0; d < head_dim; ++d) column[d * kBlock] = k[d];
  }
  if (v_is_f16) {
    auto* row = reinterpret_cast<uint16_t*>(v_block) + slot * padded;
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) store_f16(load(v + d), row + d);
    if (d < head_dim)
      store_partial<store_f16>(load_partial(v + d, head_dim - d), row + d, head_dim - d);
  } else {
    float* row = reinterpret_cast<float*>(v_block) + slot * padded;
    for (int64_t d = 0; d < head_dim; ++d) row[d] = v[d];
  }
}

}  // namespace limpid::LIMPID_ISA
