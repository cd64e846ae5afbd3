// The products of the backward pass of `linear`: dx = dy W and dW = dy^T x.
//
// Both have a right operand that lies in rows (W, x), so one kernel serves them. The left operand
// (dy, or dy transposed) is packed once for all threads, in tiles that are read as one stream. Of
// the right operand a thread copies a panel of kMultiplyDepth rows and one tile's columns at a time
// into the L1 cache, and all tiles of the left operand meet it there (Goto & van de Geijn 2008).
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/product_tile-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

static_assert(kLeftRowGrain % kTileRows == 0 && kRightColGrain % kTileCols == 0);

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

// One tile: to[k, m] = element (m, k) of the n <= kTileRows rows from x on, 0 for the others.
void pack_tile(const PackTask& task, const float* x, int64_t n, float* to) {
  const int64_t row_step = task.transposed ? 1 : task.stride;
  const int64_t k_step = task.transposed ? task.stride : 1;
  for (int64_t k = 0; k < task.depth; ++k, x += k_step, to += kTileRows) {
    for (int64_t m = 0; m < kTileRows; ++m) to[m] = m < n ? x[m * row_step] : 0.0F;
  }
}

// The same for a whole tile whose rows lie side by side in memory.
void pack_columns(const float* x, int64_t stride, int64_t depth, float* to) {
  for (int64_t k = 0; k < depth; ++k, x += stride, to += kTileRows)
    __builtin_memcpy(to, x, sizeof(float) * kTileRows);
}

// The same for a whole tile whose rows lie one after another. A short stretch of all rows is read
// at a time, so that what is written stays in the L1 cache until its lines are complete.
void pack_rows(const float* x, int64_t stride, int64_t depth, float* to) {
  constexpr int64_t kStretch = 64;
  for (int64_t k = 0; k < depth; k += kStretch) {
    const int64_t n = depth - k < kStretch ? depth - k : kStretch;
    for (int64_t m = 0; m < kTileRows; ++m) {
      const float* from = x + m * stride + k;
      float* out = to + k * kTileRows + m;
      for (int64_t i = 0; i < n; ++i) out[i * kTileRows] = from[i];
    }
  }
}

}  // namespace

void pack_left(const PackTask& task) {
  for (int64_t row = task.row_begin; row < task.row_end; row += kTileRows) {
    const float* x = task.x + row * (task.transposed ? 1 : task.stride);
    float* to = task.packed + row * task.depth;
    const int64_t n = task.rows - row;
    if (n < kTileRows) {
      pack_tile(task, x, n, to);
    } else if (task.transposed) {
      pack_columns(x, task.stride, task.depth, to);
    } else {
      pack_rows(x, task.stride, task.depth, to);
    }
  }
}

// Panels of the right operand come one after another: along the columns, then along the depth.
// While the tiles of one are computed, the lines of the next one come from memory.
void multiply_packed(const MultiplyTask& task) {
  const auto copy = task.right_type == FloatType::kF16    ? copy_panel<StoredF16>
                    : task.right_type == FloatType::kBF16 ? copy_panel<StoredBf16>
                                                          : copy_panel<StoredF32>;
  const int64_t element = task.right_type == FloatType::kF32 ? 4 : 2;
  const int64_t n_tiles = (task.row_end - task.row_begin + kTileRows - 1) / kTileRows;
  for (int64_t k = 0; k < task.depth; k += kMultiplyDepth) {
    const int64_t depth = task.depth - k < kMultiplyDepth ? task.depth - k : kMultiplyDepth;
    const int64_t rows_per_tile = (depth + n_tiles - 1) / n_tiles;
    for (int64_t col = task.col_begin; col < task.col_end; col += kTileCols) {
      copy(task, k, depth, col);
      const bool last_col = col + kTileCols >= task.col_end;
      const int64_t next_col = last_col ? task.col_begin : col + kTileCols;
      const int64_t next = (last_col ? k + depth : k) * task.right_stride + next_col;
      Ahead next_right{static_cast<const char*>(task.right) + next * element,
                       task.right_stride * element};
      for (int64_t row = task.row_begin; row < task.row_end; row += kTileRows) {
        float* y = task.y + row * task.y_stride + col;
        const bool last_row = row + kTileRows >= task.row_end;
        const float* next_y = last_row ? task.y + task.row_begin * task.y_stride + next_col
                                       : y + kTileRows * task.y_stride;
        multiply_tile({.left = task.left + row * task.depth + k * kTileRows,
                       .left_step = kTileRows,
                       .right = task.scratch,
                       .right_step = kTileCols,
                       .depth = depth,
                       .y = y,
                       .y_step = task.y_stride,
                       .n_rows = last_row ? task.row_end - row : kTileRows,
                       .n_cols = task.cols - col,
                       .add = task.add || k > 0 ? y : nullptr,
                       .add_step = task.y_stride,
                       .next_y = lines_of(next_y, task.y_stride),
                       .next_right = next_right});
        next_right.at += rows_per_tile * next_right.step;
      }
    }
  }
}

void add_rows(const float* x, int64_t n_rows, int64_t cols, int64_t begin, int64_t end,
              float* sums) {
  for (int64_t j = begin; j < end; j += kLanes) {
    F32x16 sum = load_at(sums, j, end);
    for (int64_t t = 0; t < n_rows; ++t) sum = add(sum, load_at(x + t * cols, j, end));
    store_at(sum, sums, j, end);
  }
}

}  // namespace limpid::LIMPID_ISA
