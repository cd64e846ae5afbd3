// C = A B, or C = base + A B, for the shapes of a small transformer.
//
// A tile of C stays in registers while k runs over the inner dimension: for each k, one vector (or
// two) of B is loaded and multiplied by one number of A per row. With AVX2 a tile is 4 rows by 2
// vectors: 8 sums, which are independent of each other and hide the latency of the multiply-adds.
#pragma once

#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

// The left matrix: element (r, k) of A is memory[r * row_stride + k * k_stride]. Exchanged strides
// give the transpose.
template <typename T>
struct LeftMatrix {
  const T* memory;
  int64_t row_stride;
  int64_t k_stride;
};

// The right matrix, in whole vectors: row k begins at memory + k * stride; its next vector is
// `step` further.
template <typename T>
struct RightMatrix {
  const T* memory;
  int64_t stride;
  int64_t step = kLanes<T>;
};

// The right matrix in panels of `rows` rows.
template <typename T>
inline RightMatrix<T> in_panels(const T* memory, int64_t panel_rows) {
  return {memory, kLanes<T>, panel_rows * kLanes<T>};
}

// The size of a tile, whose sums are kept in registers: twice as many vectors as rows.
#if defined(__AVX512F__)
inline constexpr int kMostRows = 8;
#else
inline constexpr int kMostRows = 4;
#endif

// A single row is too short a chain of additions to keep the multipliers busy. A tile therefore has
// two vectors of columns, or, if there is only one, separate sums for even and odd k. This function
// and its callers are inlined, because passing structs of strides costs as much as computing a
// small tile.
template <typename T, int kRows, int kCols, bool kBase>
[[gnu::always_inline]] inline void product_tile(LeftMatrix<T> a, RightMatrix<T> b, const T* base,
                                                T* c, int64_t c_stride, int64_t n_k) {
  constexpr int kSplit = 2 / kCols;
  Vector<T> sums[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      sums[r][i] = kBase && i < kCols ? at(base + r * c_stride + i * kLanes<T>) : Vector<T>{};
    }
  }
  const auto add = [&](int64_t k, int i) {
    const Vector<T> row = at(b.memory + k * b.stride + (kCols == 2 ? i * b.step : 0));
    const T* column = a.memory + k * a.k_stride;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][i] += row * column[r * a.row_stride];
  };
  int64_t k = 0;
  for (; k + kSplit <= n_k; k += kSplit) {
    add(k, 0);
    add(k + kSplit - 1, 1);
  }
  if (k < n_k) add(k, 0);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T* to = c + r * c_stride;
    at(to) = kCols == 2 ? sums[r][0] : sums[r][0] + sums[r][1];
    if constexpr (kCols == 2) at(to + kLanes<T>) = sums[r][1];
  }
}

template <typename T, int kCols, bool kBase, int kRows = kMostRows>
[[gnu::always_inline]] inline void product_rows(int64_t n_rows, LeftMatrix<T> a, RightMatrix<T> b,
                                                const T* base, T* c, int64_t c_stride,
                                                int64_t n_k) {
  if (n_rows == kRows) return product_tile<T, kRows, kCols, kBase>(a, b, base, c, c_stride, n_k);
  if constexpr (kRows > 1) {
    product_rows<T, kCols, kBase, kRows - 1>(n_rows, a, b, base, c, c_stride, n_k);
  }
}

// Computes C [n_rows, n_cols] from A [n_rows, n_k] and B [n_k, n_cols]. n_cols is a multiple of the
// vector length. `base` has the strides of C and may be C; it is nullptr without kBase.
template <typename T, bool kBase = false>
inline void product(int64_t n_rows, int64_t n_cols, int64_t n_k, LeftMatrix<T> a, RightMatrix<T> b,
                    T* c, int64_t c_stride, const T* base = nullptr) {
  const int64_t n_tiles = (n_rows + kMostRows - 1) / kMostRows;
  for (int64_t row = 0, tile = 0; tile < n_tiles; ++tile) {
    const int64_t n = (n_rows - row) / (n_tiles - tile);  // tiles of nearly equal height
    const LeftMatrix<T> some{a.memory + row * a.row_stride, a.row_stride, a.k_stride};
    for (int64_t col = 0; col < n_cols;) {
      const int64_t i = row * c_stride + col;
      const T* from = kBase ? base + i : nullptr;
      const RightMatrix<T> columns{b.memory + col / kLanes<T> * b.step, b.stride, b.step};
      if (n_cols - col >= 2 * kLanes<T>) {
        product_rows<T, 2, kBase>(n, some, columns, from, c + i, c_stride, n_k);
        col += 2 * kLanes<T>;
      } else {
        product_rows<T, 1, kBase>(n, some, columns, from, c + i, c_stride, n_k);
        col += kLanes<T>;
      }
    }
    row += n;
  }
}

}  // namespace limpid::LIMPID_ISA
