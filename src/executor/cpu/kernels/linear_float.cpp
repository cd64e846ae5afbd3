// y = x W^T + b for weights that stay in the file's own f32, f16 or bf16.
//
// One order of addition for one token, for a few and for many: lane l of an output sums k = l, l +
// 16, … by fused multiply-add in order of k (lanes beyond the last column add 0 * 0), then the
// lanes are added in a fixed tree, then the bias is added. So the three paths below differ in the
// order of their loads, and never in a bit of the result:
//  - one token: straight from the file's map, and memory is the limit. task.n_streams says how:
//    neighbouring rows together with prefetching (0), or 2 or 4 rows far apart without it.
//  - up to kPanelTokens tokens: tiles of kRows rows x kTokens tokens, whose sums stay in registers.
//    A row is loaded once for kTokens tokens.
//  - more tokens: a panel of rows is copied into scratch, in the order in which tiles read it, and
//    stays in the L2 cache while it is multiplied with all tokens. The copy is f32, because many
//    CPUs widen f16 and bf16 in the units that multiply: tiles that widened each row once more for
//    every six tokens ran at three quarters of the limit at most. Long rows are cut into chunks of
//    kChunkSteps steps, so that the tokens' columns stay in the L1 cache; the sums of a tile are
//    carried from chunk to chunk in memory, which changes no bit of them.
//
// A step is the columns that one register of 64 bytes holds of x: 16 of f32. With products of bf16
// it is 32, and lane l sums the pair k = 2 l, 2 l + 1 of each step.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"
#include "tensor/row_order.h"

namespace limpid::LIMPID_ISA {
namespace {

// The size of a register tile, rows x tokens. On a CPU without wide registers, tiles of one row and
// one token are as fast, and far less code. The tiles of a panel take more rows where a register
// has fewer than sixteen lanes: panel_tile() says why.
#if LIMPID_ISA_scalar
constexpr int kRows = 1, kPanelRows = 1, kTokens = 1, kRowsOfOneToken = 1;
#elif defined(__AVX512F__)
constexpr int kRows = 4, kPanelRows = 4, kTokens = 6, kRowsOfOneToken = 4;
#elif defined(__AVX2__)
constexpr int kRows = 2, kPanelRows = 4, kTokens = 3, kRowsOfOneToken = 4;
#else
constexpr int kRows = 2, kPanelRows = 8, kTokens = 3, kRowsOfOneToken = 4;
#endif
// With as many tokens or more, rows are copied into a panel. With AVX2 and 18 tokens, a panel was
// 1.2 times as fast as rows straight from the file, and with AVX-512 0.85 times.
constexpr int64_t kPanelTokens = kNative == 8 ? 12 : 24;
static_assert(kFloatTokenGrain % kTokens == 0);
// Steps of a chunk: kTokens times 64 bytes of each stay in the L1 cache.
constexpr int64_t kChunkSteps = 64;
constexpr int64_t kChunkedRows = 64;  // rows of a panel when there is more than one chunk
static_assert(kChunkedRows % kPanelRows == 0);

// Rows lie one after another, so a few rows are one stretch of memory. The loop over them
// prefetches the next stretch line by line in the order of memory: one stream is faster than a
// stream per row.
template <int64_t kBytes>
LIMPID_INLINE void prefetch_lines(const void* next) {
  const char* p = static_cast<const char*>(next);
  for (int64_t i = 0; i < kBytes; i += 64) {
    __builtin_prefetch(p + kAheadInSecondCache + i, 0, 2);
    __builtin_prefetch(p + kAheadInFirstCache + i, 0, 3);
  }
}

// Weights of bf16 times activations of bf16: two columns in each lane, a word of 32 bits.
struct PairsOfBf16 {
  using Element = uint16_t;
  static constexpr int64_t kStep = 2 * kLanes;
  static LIMPID_INLINE F32x16 load(const uint16_t* p) {
    return LIMPID_ISA::load(reinterpret_cast<const float*>(p));
  }
  static LIMPID_INLINE F32x16 load_partial(const uint16_t* p, int64_t n) {
    uint16_t buffer[kStep] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
    return load(buffer);
  }
  static LIMPID_INLINE NativeF32 multiply_add(NativeF32 w, NativeF32 x, NativeF32 sum) {
    return native::add_pair_products(NativeI32(w), NativeI32(x), sum);
  }
};
// The same interface for weights that are multiplied as f32.
template <class Stored>
struct Floats : Stored {
  static constexpr int64_t kStep = kLanes;
  static LIMPID_INLINE NativeF32 multiply_add(NativeF32 w, NativeF32 x, NativeF32 sum) {
    return native::add_product(w, x, sum);
  }
};

template <class W>
LIMPID_INLINE F32x16 multiply_add(F32x16 w, F32x16 x, F32x16 sum) {
  return lanewise([](auto a, auto b, auto c) { return W::multiply_add(a, b, c); }, w, x, sum);
}

// Words of 32 bits that `cols` columns of a token take, packed.
template <class W>
LIMPID_INLINE int64_t words(int64_t cols) {
  return (cols + W::kStep - 1) / W::kStep * kLanes;
}

LIMPID_INLINE int64_t output_row(const FloatLinearTask& task, int64_t row) {
  const int64_t head_dim = task.interleaved_head_dim;
  row += task.first_row;
  return head_dim == 0 ? row : half_split_row(row, head_dim, head_dim);
}

// Row r of the sums is row + r * step of the weight.
template <int kR, int kT>
LIMPID_INLINE void write_outputs(const FloatLinearTask& task, const F32x16 (&sums)[kR][kT],
                                 int64_t row, int64_t n_rows, int64_t token, int64_t step = 1) {
  float folded[kR][kT];
  fold_all<kR * kT>(&sums[0][0], &folded[0][0], kAdd);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    if (r >= n_rows) break;
    const int64_t out = output_row(task, row + r * step);
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) {
      float sum = folded[r][t];
      if (task.bias != nullptr) sum += task.bias[out];
      task.y[(token + t) * task.y_stride + out] = sum;
    }
  }
}

// The last n columns of a token, less than a step. Packed tokens are padded with zeros; a single
// token of f32 may be unpacked, so only n numbers are read.
template <class W, int kT>
LIMPID_INLINE F32x16 load_last(const float* x, int64_t n) {
  return kT == 1 && W::kStep == kLanes ? load_partial(x, n) : load(x);
}

// The products of kR rows of the file, which lie `step` rows apart, and kT tokens.
template <class W, int kR, int kT, bool kPrefetch = true>
void direct_tile(const FloatLinearTask& task, int64_t row, int64_t token, int64_t step = 1) {
  const int64_t cols = task.cols;
  const int64_t stride = step * cols;
  const auto* w = reinterpret_cast<const typename W::Element*>(task.weight) + row * cols;
  const float* x = task.x + token * words<W>(cols);
  F32x16 sums[kR][kT];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) sums[r][t] = zero();
  }
  int64_t k = 0;
  const auto* next = w + kR * cols;
  for (; k + W::kStep <= cols; k += W::kStep, next += kR * W::kStep, x += kT * kLanes) {
    if constexpr (kPrefetch) prefetch_lines<kR * W::kStep * sizeof(typename W::Element)>(next);
    decltype(W::load(w)) rows[kR];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) rows[r] = W::load(w + r * stride + k);
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) {
      const F32x16 xs = load(x + t * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) sums[r][t] = multiply_add<W>(rows[r], xs, sums[r][t]);
    }
  }
  if (k < cols) {
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const auto ws = W::load_partial(w + r * stride + k, cols - k);
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t)
        sums[r][t] = multiply_add<W>(ws, load_last<W, kT>(x + t * kLanes, cols - k), sums[r][t]);
    }
  }
  write_outputs(task, sums, row, kR, token, step);
}

// The products of kR rows and tokens [token, end), at most kT tokens at a time.
template <class W, int kR, int kT>
LIMPID_INLINE void direct_tokens(const FloatLinearTask& task, int64_t row, int64_t token) {
  for (; token + kT <= task.n_tokens; token += kT) direct_tile<W, kR, kT>(task, row, token);
  if constexpr (kT > 1) {
    if (token < task.n_tokens) direct_tokens<W, kR, kT - 1>(task, row, token);
  }
}

// One token and row i of each of kStreams equal parts of the range, for all i. Returns the first
// row after the parts.
template <class W, int kStreams>
int64_t direct_streams(const FloatLinearTask& task) {
  const int64_t part = (task.row_end - task.row_begin) / kStreams;
  for (int64_t row = task.row_begin; row < task.row_begin + part; ++row)
    direct_tile<W, kStreams, 1, false>(task, row, 0, part);
  return task.row_begin + kStreams * part;
}

template <class W>
void linear_direct(const FloatLinearTask& task) {
  int64_t row = task.row_begin;
  if (task.n_tokens == 1 && task.n_streams > 0) {
    row = task.n_streams == 4 ? direct_streams<W, 4>(task) : direct_streams<W, 2>(task);
  } else if (task.n_tokens == 1) {
    for (; row + kRowsOfOneToken <= task.row_end; row += kRowsOfOneToken) {
      direct_tile<W, kRowsOfOneToken, 1>(task, row, 0);
    }
  } else {
    for (; row + kRows <= task.row_end; row += kRows)
      direct_tokens<W, kRows, kTokens>(task, row, 0);
  }
  for (; row < task.row_end; ++row) direct_tokens<W, 1, kTokens>(task, row, 0);
}

// A panel: for each kPanelRows rows, for each step of columns, kPanelRows x 16 words. Columns and
// rows that do not exist are 0.
template <class W>
void copy_panel(const FloatLinearTask& task, int64_t row, int64_t n_rows, float* panel) {
  const int64_t cols = task.cols;
  const auto* w = reinterpret_cast<const typename W::Element*>(task.weight);
  for (int64_t r0 = 0; r0 < n_rows; r0 += kPanelRows) {
    const auto* next = w + (row + r0 + kPanelRows) * cols;
    for (int64_t k = 0; k < cols; k += W::kStep, next += kPanelRows * W::kStep) {
      prefetch_lines<kPanelRows * W::kStep * sizeof(typename W::Element)>(next);
      for (int r = 0; r < kPanelRows; ++r, panel += kLanes) {
        const auto* from = w + (row + r0 + r) * cols + k;
        const int64_t left = r0 + r < n_rows ? cols - k : 0;
        store(left >= W::kStep ? W::load(from) : W::load_partial(from, left), panel);
      }
    }
  }
}

// The products of columns [k, k_end) of kPanelRows rows and kT tokens. Sums of earlier columns are
// read from `carried` [kPanelRows][kT][16], and the new sums are written there; after the last
// columns the outputs are written. `ahead` is prefetched meanwhile, a line for every step.
//
// AVX2 has sixteen registers of eight lanes. Sixteen lanes of 2 rows x 3 tokens fill twelve of them
// with sums; the operands do not fit into the other four, so a step loads sixteen registers for
// twelve multiply-adds, and loading is the limit. Instead, the lanes of one register are computed
// for all columns, and then the next ones: lanes 0 to 7, then 8 to 15. Twelve registers now hold
// sums of 4 rows x 3 tokens, three the tokens and one a row, and a step loads seven. Each lane's
// sum is the same chain as before.
template <class W, int kT>
void panel_tile(const FloatLinearTask& task, const float* panel, int64_t k, int64_t k_end,
                float* carried, int64_t row, int64_t n_rows, int64_t token, const float* ahead) {
  const int64_t n_steps = (k_end - k + W::kStep - 1) / W::kStep;
  const float* x = task.x + token * words<W>(task.cols) + k / W::kStep * kT * kLanes;
  panel += k / W::kStep * kPanelRows * kLanes;
#pragma GCC unroll 1
  for (int lane = 0; lane < kLanes; lane += kNative) {
    NativeF32 part[kPanelRows][kT];
#pragma GCC unroll 8
    for (int r = 0; r < kPanelRows; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t)
        part[r][t] =
            k == 0 ? NativeF32{} : load_native<NativeF32>(carried + (r * kT + t) * kLanes + lane);
    }
    const float* rows = panel + lane;
    const float* tokens = x + lane;
    for (int64_t step = 0; step < n_steps; ++step) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += kNative;
      NativeF32 xs[kT];
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) xs[t] = load_native<NativeF32>(tokens + t * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kPanelRows; ++r) {
        const auto w = native::in_register(load_native<NativeF32>(rows + r * kLanes));
#pragma GCC unroll 8
        for (int t = 0; t < kT; ++t) part[r][t] = W::multiply_add(w, xs[t], part[r][t]);
      }
      rows += kPanelRows * kLanes;
      tokens += kT * kLanes;
    }
    if constexpr (kNative == kLanes) {  // one register has all lanes
      if (k_end == task.cols) return write_outputs(task, part, row, n_rows, token);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kPanelRows; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) store_native(part[r][t], carried + (r * kT + t) * kLanes + lane);
    }
  }
  if (k_end < task.cols) return;
  F32x16 sums[kPanelRows][kT];
#pragma GCC unroll 8
  for (int r = 0; r < kPanelRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) sums[r][t] = load(carried + (r * kT + t) * kLanes);
  }
  write_outputs(task, sums, row, n_rows, token);
}

// The rows of a panel, [row, row_end) of the weight.
struct Panel {
  const float* data;
  int64_t stride;  // words from kPanelRows rows to the next
  int64_t row;
  int64_t row_end;
};

// The products of the panel and tokens [token, end), kT tokens at a time, one chunk of columns
// after another.
template <class W, int kT>
LIMPID_INLINE void panel_tokens(const FloatLinearTask& task, const Panel& panel, int64_t token) {
  constexpr int64_t kChunk = kChunkSteps * W::kStep;
  alignas(64) float carried[kChunkedRows * kT * kLanes];
  for (; token + kT <= task.n_tokens; token += kT) {
    for (int64_t k = 0; k < task.cols; k += kChunk) {
      const int64_t k_end = k + kChunk < task.cols ? k + kChunk : task.cols;
      const float* rows = panel.data;
      float* sums = carried;
      // Prefetch the columns or tokens after these; each row of tiles prefetches a part.
      const float* ahead = task.x + token * words<W>(task.cols) + words<W>(k_end) * kT;
      for (int64_t r = panel.row; r < panel.row_end; r += kPanelRows, rows += panel.stride) {
        panel_tile<W, kT>(task, rows, k, k_end, sums, r, panel.row_end - r, token, ahead);
        ahead += words<W>(k_end - k);
        if (task.cols > kChunk) sums += kPanelRows * kT * kLanes;
      }
    }
  }
  if constexpr (kT > 1) {
    if (token < task.n_tokens) panel_tokens<W, kT - 1>(task, panel, token);
  }
}

// A panel of rows is read from memory once, and from the L2 cache for each tile of tokens.
template <class W>
void linear(const FloatLinearTask& task) {
  const int64_t stride = words<W>(task.cols) * kPanelRows;
  int64_t panel_rows = task.scratch_floats / stride * kPanelRows;
  if (task.cols > kChunkSteps * W::kStep && panel_rows > kChunkedRows) panel_rows = kChunkedRows;
  if (task.n_tokens < kPanelTokens || panel_rows == 0) {
    linear_direct<W>(task);
    return;
  }
  for (int64_t row = task.row_begin; row < task.row_end; row += panel_rows) {
    const int64_t row_end = row + panel_rows < task.row_end ? row + panel_rows : task.row_end;
    copy_panel<W>(task, row, row_end - row, task.scratch);
    panel_tokens<W, kTokens>(task, {task.scratch, stride, row, row_end}, 0);
  }
}

}  // namespace

void pack_tokens(DType products, const float* x, int64_t n_tokens, int64_t cols,
                 int64_t token_begin, int64_t token_end, float* packed) {
  const bool pairs = products == DType::kBF16;
  const int64_t step = pairs ? PairsOfBf16::kStep : kLanes;
  const int64_t width = (cols + step - 1) / step * kLanes;
  for (int64_t token = token_begin; token < token_end; token += kTokens) {
    const int64_t n = token + kTokens < n_tokens ? kTokens : n_tokens - token;
    for (int64_t t = 0; t < n; ++t) {
      const float* from = x + (token + t) * cols;
      for (int64_t k = 0; k < width / kLanes * step; k += kLanes) {
        const F32x16 values = k < cols ? load_at(from, k, cols) : zero();
        float* to = packed + token * width + (k / step * n + t) * kLanes;
        if (pairs) {
          store_bf16(values, reinterpret_cast<uint16_t*>(to) + k % step);
        } else {
          store(values, to);
        }
      }
    }
  }
}

void linear_float(const FloatLinearTask& task) {
  const auto of_type = task.products == DType::kBF16 ? linear<PairsOfBf16>
                       : task.type == DType::kF16    ? linear<Floats<StoredF16>>
                       : task.type == DType::kBF16   ? linear<Floats<StoredBf16>>
                                                     : linear<Floats<StoredF32>>;
  of_type(task);
}

}  // namespace limpid::LIMPID_ISA
