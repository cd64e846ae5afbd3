// The products of `linear` in training: y = x W^T, dx = dy W and dW = dy^T x.
//
// The left operand (x, dy, or dy transposed) is packed in tiles that are read as one stream. Of the
// right operand a thread copies a panel of kMultiplyDepth rows and one tile's columns at a time
// into the L1 cache, and multiplies it with all packed tiles (Goto & van de Geijn 2008, "Anatomy of
// high-performance matrix multiplication"). Where the right operand is transposed in memory (W^T),
// the copy transposes it. So one kernel serves all three products.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/product_tile-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

static_assert(kLeftRowGrain % kTileRows == 0 && kRightColGrain % kTileCols == 0);

// Up to kNative elements, of which n are left; zeros fill the register.
template <class Type>
LIMPID_INLINE NativeF32 load_row(const typename Type::Element* from, int64_t n) {
  if (n >= kNative) return Type::load_register(from);
  typename Type::Element row[kNative] = {};
  for (int64_t i = 0; i < n; ++i) row[i] = from[i];
  return Type::load_register(row);
}

// Rows [k, k + depth) of the columns from `col`, [depth][kTileCols], 0 beyond the last column.
template <class Type>
void copy_panel(const MultiplyTask& task, int64_t k, int64_t depth, int64_t col) {
  const auto* from =
      static_cast<const typename Type::Element*>(task.right) + k * task.right_stride + col;
  float* to = task.scratch;
  const int64_t n = task.cols - col;
  for (int64_t i = 0; i < depth; ++i, from += task.right_stride, to += kTileCols) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      const int64_t left = n - v * kLanes;
      store(left >= kLanes ? Type::load(from + v * kLanes)
                           : Type::load_partial(from + v * kLanes, left),
            to + v * kLanes);
    }
  }
}

// The same for a transposed right operand: its column j is row j in memory.
template <class Type>
void copy_transposed_panel(const MultiplyTask& task, int64_t k, int64_t depth, int64_t col) {
  const auto* right = static_cast<const typename Type::Element*>(task.right);
  for (int64_t j = col; j < col + kTileCols; j += kNative) {
    for (int64_t i = 0; i < depth; i += kNative) {
      NativeF32 rows[kNative];
#pragma GCC unroll 16
      for (int r = 0; r < kNative; ++r) {
        const auto* from = right + (j + r) * task.right_stride + k + i;
        rows[r] = j + r < task.cols ? load_row<Type>(from, depth - i) : NativeF32{};
      }
      transpose(rows);
      float* to = task.scratch + i * kTileCols + j - col;
#pragma GCC unroll 16
      for (int r = 0; r < kNative; ++r) {
        if (i + r >= depth) break;
        store_native(rows[r], to + r * kTileCols);
      }
    }
  }
}

template <class Type>
LIMPID_INLINE void copy_right(const MultiplyTask& task, int64_t k, int64_t depth, int64_t col) {
  task.right_transposed ? copy_transposed_panel<Type>(task, k, depth, col)
                        : copy_panel<Type>(task, k, depth, col);
}

// Floats of a line of the cache.
constexpr int64_t kLine = 16;

// Tiles of rows [row, row_end) that lie side by side in memory. kSteps columns of one tile are
// written before those of the next, because tiles may lie a multiple of 4 KiB apart: their lines
// then share one set of the L1 cache, which cannot hold all of them. Meanwhile the next kSteps
// columns, which a CPU does not foresee, come from memory.
void pack_columns(const PackTask& task, int64_t row, int64_t row_end) {
  constexpr int64_t kSteps = 8;
  for (int64_t k = 0; k < task.depth; k += kSteps) {
    const int64_t k_end = k + kSteps < task.depth ? k + kSteps : task.depth;
    for (int64_t next = k + kSteps; next < k + 2 * kSteps; ++next) {
      for (int64_t r = row; r < row_end; r += kLine)
        __builtin_prefetch(task.x + next * task.stride + r);
    }
    for (int64_t r = row; r < row_end; r += kTileRows) {
      for (int64_t i = k; i < k_end; ++i) {
        const float* from = task.x + i * task.stride + r;
        float* to = task.packed + r * task.depth + i * kTileRows;
        if (r + kTileRows <= task.rows) {
          __builtin_memcpy(to, from, sizeof(float) * kTileRows);
        } else {
          store_partial(load_partial(from, task.rows - r), to, kTileRows);
        }
      }
    }
  }
}

// One tile of rows that lie one after another, kNative columns at a time. A column is stored in
// whole registers; what is beyond the tile's rows, the next column overwrites. Only at the end
// would that be the next tile's place. Meanwhile the rows of the next tile come from memory.
void pack_rows(const PackTask& task, int64_t row) {
  constexpr int kBlocks = (kTileRows + kNative - 1) / kNative;
  const float* x = task.x + row * task.stride;
  float* to = task.packed + row * task.depth;
  const float* end = to + kTileRows * task.depth;
  const int64_t n = task.rows - row < kTileRows ? task.rows - row : kTileRows;
  for (int64_t k = 0; k < task.depth; k += kNative) {
    if (k % kLine == 0) {
      for (int64_t m = kTileRows; m < 2 * kTileRows; ++m)
        __builtin_prefetch(x + m * task.stride + k);
    }
    NativeF32 rows[kBlocks][kNative];
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 16
      for (int r = 0; r < kNative; ++r) {
        const int m = b * kNative + r;
        rows[b][r] = m < kTileRows && m < n
                         ? load_row<StoredF32>(x + m * task.stride + k, task.depth - k)
                         : NativeF32{};
      }
      transpose(rows[b]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kNative; ++i, to += kTileRows) {
      if (k + i >= task.depth) break;
#pragma GCC unroll 2
      for (int b = 0; b < kBlocks; ++b) {
        float* part = to + b * kNative;
        part + kNative <= end ? store_native(rows[b][i], part)
                              : store_first(rows[b][i], part, end - part);
      }
    }
  }
}

}  // namespace

void pack_left(const PackTask& task) {
  constexpr int64_t kTilesTogether = 8;  // whole lines of memory are read
  const int64_t step = task.transposed ? kTilesTogether * kTileRows : kTileRows;
  for (int64_t row = task.row_begin; row < task.row_end; row += step) {
    const int64_t end = row + step < task.row_end ? row + step : task.row_end;
    task.transposed ? pack_columns(task, row, end) : pack_rows(task, row);
  }
}

// What tile i of n brings near of the panel at `next`, of up to kMultiplyDepth x kTileCols
// elements. Of a transposed one, tiles 2c and 2c + 1 take columns [32 c, 32 c + 32) of 16 rows or
// more each.
LIMPID_INLINE Ahead part_of_panel(const MultiplyTask& task, int64_t next, int64_t depth, int64_t i,
                                  int64_t n) {
  const int64_t element = task.right_type == DType::kF32 ? 4 : 2;
  const int64_t step = task.right_stride * element;
  const char* at = static_cast<const char*>(task.right) + next * element;
  if (!task.right_transposed) return {at + i * ((depth + n - 1) / n) * step, step};
  constexpr int64_t kParts = kMultiplyDepth / 32;
  return {at + i % 2 * 16 * step + (i / 2 < kParts ? i / 2 : 0) * 128, step};
}

// One panel of the right operand after another: down the depth, then along the columns. While the
// tiles of one are computed, the lines of the next one come from memory.
void multiply_packed(const MultiplyTask& task) {
  const auto copy = task.right_type == DType::kF16    ? copy_right<StoredF16>
                    : task.right_type == DType::kBF16 ? copy_right<StoredBf16>
                                                      : copy_right<StoredF32>;
  const int64_t n_tiles = (task.row_end - task.row_begin + kTileRows - 1) / kTileRows;
  for (int64_t col = task.col_begin; col < task.col_end; col += kTileCols) {
    for (int64_t k = 0; k < task.depth; k += kMultiplyDepth) {
      const int64_t depth = task.depth - k < kMultiplyDepth ? task.depth - k : kMultiplyDepth;
      copy(task, k, depth, col);
      const bool last_k = k + kMultiplyDepth >= task.depth;
      const int64_t next_col = last_k ? col + kTileCols : col;
      const int64_t next_k = last_k ? 0 : k + kMultiplyDepth;
      const int64_t next = task.right_transposed ? next_col * task.right_stride + next_k
                                                 : next_k * task.right_stride + next_col;
      int64_t tile = 0;
      for (int64_t row = task.row_begin; row < task.row_end; row += kTileRows) {
        float* y = task.y + row * task.cols + col;
        const bool last_row = row + kTileRows >= task.row_end;
        const float* next_y =
            last_row ? task.y + task.row_begin * task.cols + next_col : y + kTileRows * task.cols;
        multiply_tile({.left = task.left + row * task.depth + k * kTileRows,
                       .left_step = kTileRows,
                       .right = task.scratch,
                       .right_step = kTileCols,
                       .depth = depth,
                       .y = y,
                       .y_step = task.cols,
                       .n_rows = last_row ? task.row_end - row : kTileRows,
                       .n_cols = task.cols - col,
                       .add = k > 0 || task.add ? y
                              : task.bias       ? task.bias + col
                                                : nullptr,
                       .add_step = k > 0 || task.add ? task.cols : 0,
                       .next_y = lines_of(next_y, task.cols),
                       .next_right = part_of_panel(task, next, depth, tile++, n_tiles)});
      }
    }
  }
}

void add_rows(const float* x, int64_t n_rows, int64_t cols, int64_t begin, int64_t end,
              float* sums) {
  constexpr int kTogether = 4;  // vectors: neighbouring lines of a row
  int64_t j = begin;
  for (; j + kTogether * kLanes <= end; j += kTogether * kLanes) {
    F32x16 sum[kTogether];
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) sum[v] = load(sums + j + v * kLanes);
    for (int64_t t = 0; t < n_rows; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kTogether; ++v) sum[v] = add(sum[v], load(x + t * cols + j + v * kLanes));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) store(sum[v], sums + j + v * kLanes);
  }
  for (; j < end; j += kLanes) {
    F32x16 sum = load_at(sums, j, end);
    for (int64_t t = 0; t < n_rows; ++t) sum = add(sum, load_at(x + t * cols, j, end));
    store_at(sum, sums, j, end);
  }
}

}  // namespace limpid::LIMPID_ISA
