// Attention over one whole sequence, for one KV head: backward, and the forward op of training.
//
// The probabilities of the forward pass were not kept. They are computed again for kGradientQueries
// queries at a time, so that only a strip [queries, keys] of the [T, T] matrix is in memory. For
// one strip, with S = scale Q K^T and P = softmax(S), each row up to its own position:
//   dP = dY V^T     dS = P * (dP - D)     D[i] = dy[i] . y[i]
//   dV += P^T dY    dK += scale dS^T Q    dQ = scale dS K
// (Dao et al. 2022, arXiv:2205.14135, algorithm 4.) K and V are transposed once, so that every one
// of the five products has its right operand in rows.
//
// With dropout the forward op is Y = (P * M) V, M the factors of the mask, computed again on the
// way back: dP = (dY V^T) * M, dV += (P * M)^T dY. D = dy . y stays what it is, since sum_j p_j
// dp_j = sum_j p_j m_j (dy . v_j).
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/math-inl.h"
#include "executor/cpu/kernels/product_tile-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// to [cols, to_step] = the transpose of from [rows, from_step]; columns from `rows` to to_rows are
// 0.
void transpose_matrix(const float* from, int64_t from_step, int64_t rows, int64_t cols, float* to,
                      int64_t to_step, int64_t to_rows) {
  for (int64_t i = 0; i < to_rows; i += kNative) {
    for (int64_t j = 0; j < cols; j += kNative) {
      NativeF32 block[kNative];
#pragma GCC unroll 16
      for (int r = 0; r < kNative; ++r) {
        const float* row = from + (i + r) * from_step + j;
        block[r] = i + r >= rows         ? NativeF32{}
                   : j + kNative <= cols ? load_native<NativeF32>(row)
                                         : load_first(row, cols - j);
      }
      transpose(block);
#pragma GCC unroll 16
      for (int r = 0; r < kNative; ++r) {
        if (j + r >= cols) break;
        float* row = to + (j + r) * to_step + i;
        i + kNative <= to_rows ? store_native(block[r], row)
                               : store_first(block[r], row, to_rows - i);
      }
    }
  }
}

float dot(const float* a, const float* b, int64_t n) {
  F32x16 sum = zero();
  for (int64_t i = 0; i < n; i += kLanes) sum = fma(load_at(a, i, n), load_at(b, i, n), sum);
  return reduce_add(sum);
}

void divide(float* x, int64_t n, float divisor) {
  for (int64_t i = 0; i < n; i += kLanes)
    store_at(div(load_at(x, i, n), broadcast(divisor)), x, i, n);
}

struct Strip {
  const AttentionGradientTask& task;
  int64_t n_keys;        // padded_keys(n_tokens)
  float* keys;           // K transposed, [head_dim, n_keys]
  float* values;         // V transposed
  float* queries;        // of the strip, transposed, [head_dim, kGradientQueries]
  float* dys;            // the same of dy
  float* probabilities;  // [kGradientQueries, n_keys]
  float* dscores;        // [kGradientQueries, kGradientKeys]
  float* dscores_transposed;
  float* along_y;  // [kGradientQueries], D
  float* sums;     // [kGradientQueries], of the exponentials
};

// Multiplies row i of a block by the factors of the dropout of query `query` of head `head` for the
// keys from `key`.
void drop(const Strip& s, int64_t head, int64_t query, int64_t key, int64_t n_keys, float* row) {
  float factors[kGradientKeys];
  dropout_factors(s.task.dropout, s.task.dropout_row + query * s.task.dropout_step + head, key,
                  n_keys, factors);
  for (int64_t j = 0; j < n_keys; j += kLanes)
    store_at(mul(load_at(row, j, n_keys), load_at(factors, j, n_keys)), row, j, n_keys);
}

// The scores of queries [first, first + n) with all keys that one of them sees, as exponentials,
// whose sums go to s.sums: exp(scale * score - largest), and 0 for keys that a query does not see.
void compute_exponentials(const Strip& s, int64_t first, int64_t n) {
  const int64_t n_visible = first + n;
  const int64_t end = (n_visible + kTileCols - 1) / kTileCols * kTileCols;  // <= n_keys
  multiply_block({s.queries, kGradientQueries, s.keys, s.n_keys, s.task.head_dim, s.probabilities,
                  s.n_keys, n, end, nullptr, 0});
  for (int64_t i = 0; i < n; ++i) {
    float* row = s.probabilities + i * s.n_keys;
    s.sums[i] = exponentials(row, first + i + 1, s.task.scale).sum;
    for (int64_t j = first + i + 1; j < end; ++j) row[j] = 0;
  }
}

// dscores = P * (dP - D) * scale for the keys from `key`, and its transpose. With dropout P becomes
// P * M, from which dV is computed.
void compute_dscores(const Strip& s, int64_t head, int64_t first, int64_t n, int64_t key,
                     int64_t n_block) {
  const int64_t end = (n_block + kTileCols - 1) / kTileCols * kTileCols;
  multiply_block({s.dys, kGradientQueries, s.values + key, s.n_keys, s.task.head_dim, s.dscores,
                  kGradientKeys, n, end, nullptr, 0});
  for (int64_t i = 0; i < n; ++i) {
    float* p = s.probabilities + i * s.n_keys + key;
    float* row = s.dscores + i * kGradientKeys;
    if (s.task.dropout) drop(s, head, first + i, key, n_block, row);
    for (int64_t j = 0; j < n_block; j += kLanes) {
      const F32x16 difference = sub(load(row + j), broadcast(s.along_y[i]));
      store_at(mul(mul(load_at(p, j, n_block), difference), broadcast(s.task.scale)), row, j,
               n_block);
    }
    if (s.task.dropout) drop(s, head, first + i, key, n_block, p);
  }
  transpose_matrix(s.dscores, kGradientKeys, n, n_block, s.dscores_transposed, kGradientQueries, n);
}

// Queries [first, first + n) of one of the query heads.
void strip_gradient(const Strip& s, int64_t head, int64_t first, int64_t n) {
  const AttentionGradientTask& task = s.task;
  const int64_t d = task.head_dim;
  const int64_t at = first * task.q_stride + head * d;
  transpose_matrix(task.q + at, task.q_stride, n, d, s.queries, kGradientQueries, kGradientQueries);
  transpose_matrix(task.dy + at, task.q_stride, n, d, s.dys, kGradientQueries, kGradientQueries);
  for (int64_t i = 0; i < n; ++i)
    s.along_y[i] = dot(task.dy + at + i * task.q_stride, task.y + at + i * task.q_stride, d);
  compute_exponentials(s, first, n);
  for (int64_t i = 0; i < n; ++i) divide(s.probabilities + i * s.n_keys, first + i + 1, s.sums[i]);
  for (int64_t key = 0; key < first + n; key += kGradientKeys) {
    const int64_t n_block = first + n - key < kGradientKeys ? first + n - key : kGradientKeys;
    compute_dscores(s, head, first, n, key, n_block);
    const int64_t kv = key * task.kv_stride;
    multiply_block({s.probabilities + key, s.n_keys, task.dy + at, task.q_stride, n, task.dv + kv,
                    task.kv_stride, n_block, d, task.dv + kv, task.kv_stride});
    multiply_block({s.dscores, kGradientKeys, task.q + at, task.q_stride, n, task.dk + kv,
                    task.kv_stride, n_block, d, task.dk + kv, task.kv_stride});
    multiply_block({s.dscores_transposed, kGradientQueries, task.k + kv, task.kv_stride, n_block,
                    task.dq + at, task.q_stride, n, d, key > 0 ? task.dq + at : nullptr,
                    task.q_stride});
  }
}

void zero_rows(float* x, int64_t n_rows, int64_t stride, int64_t cols) {
  for (int64_t t = 0; t < n_rows; ++t) {
    for (int64_t i = 0; i < cols; ++i) x[t * stride + i] = 0;
  }
}

// The forward op for the same queries: out = (P * M) V, one block of keys after another. The
// results, not the probabilities, are divided by the sums.
void strip_forward(const Strip& s, int64_t head, int64_t first, int64_t n) {
  const AttentionGradientTask& task = s.task;
  const int64_t d = task.head_dim;
  const int64_t at = first * task.q_stride + head * d;
  transpose_matrix(task.q + at, task.q_stride, n, d, s.queries, kGradientQueries, kGradientQueries);
  compute_exponentials(s, first, n);
  for (int64_t key = 0; key < first + n; key += kGradientKeys) {
    const int64_t n_block = first + n - key < kGradientKeys ? first + n - key : kGradientKeys;
    float* p = s.probabilities + key;
    if (s.task.dropout) {
      for (int64_t i = 0; i < n; ++i) drop(s, head, first + i, key, n_block, p + i * s.n_keys);
    }
    transpose_matrix(p, s.n_keys, n, n_block, s.dscores_transposed, kGradientQueries, n);
    multiply_block({s.dscores_transposed, kGradientQueries, task.v + key * task.kv_stride,
                    task.kv_stride, n_block, task.out + at, task.q_stride, n, d,
                    key > 0 ? task.out + at : nullptr, task.q_stride});
  }
  for (int64_t i = 0; i < n; ++i) divide(task.out + at + i * task.q_stride, d, s.sums[i]);
}

Strip make_strip(const AttentionGradientTask& task) {
  const int64_t n_keys = padded_keys(task.n_tokens);
  const int64_t d = task.head_dim;
  float* free = task.scratch;
  const auto take = [&](int64_t n) { return (free += n) - n; };
  const Strip s{task,
                n_keys,
                take(d * n_keys),
                take(d * n_keys),
                take(d * kGradientQueries),
                take(d * kGradientQueries),
                take(kGradientQueries * n_keys),
                take(kGradientQueries * kGradientKeys),
                take(kGradientQueries * kGradientKeys),
                take(kGradientQueries),
                take(kGradientQueries)};
  transpose_matrix(task.k, task.kv_stride, task.n_tokens, d, s.keys, n_keys, n_keys);
  return s;
}

template <class Function>
LIMPID_INLINE void for_strips(const Strip& s, Function function) {
  for (int64_t head = 0; head < s.task.group; ++head) {
    for (int64_t first = 0; first < s.task.n_tokens; first += kGradientQueries) {
      const int64_t left = s.task.n_tokens - first;
      function(s, head, first, left < kGradientQueries ? left : kGradientQueries);
    }
  }
}

}  // namespace

void attention_gradient(const AttentionGradientTask& task) {
  const Strip s = make_strip(task);
  transpose_matrix(task.v, task.kv_stride, task.n_tokens, task.head_dim, s.values, s.n_keys,
                   s.n_keys);
  zero_rows(task.dk, task.n_tokens, task.kv_stride, task.head_dim);
  zero_rows(task.dv, task.n_tokens, task.kv_stride, task.head_dim);
  for_strips(s, strip_gradient);
}

void attend_whole(const AttentionGradientTask& task) {
  for_strips(make_strip(task), strip_forward);
}

}  // namespace limpid::LIMPID_ISA
