// C = A B, or C += A B, for the shapes of a small transformer.
#pragma once

#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

// Element (r, k) of A is memory[r * row_stride + k * k_stride]: as it lies, or turned over.
template <typename T>
struct LeftMatrix {
  const T* memory;
  int64_t row_stride;
  int64_t k_stride;
};

// Rows of whole vectors.
template <typename T>
struct RightMatrix {
  const T* memory;
  int64_t stride;
};

inline constexpr int kMostRows = 8;  // sums that are kept in registers at once

template <typename T, int kRows, bool kAdd>
inline void product_tile(LeftMatrix<T> a, RightMatrix<T> b, T* c, int64_t c_stride, int64_t n_k) {
  Vector<T> sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = kAdd ? at(c + r * c_stride) : Vector<T>{};
  for (int64_t k = 0; k < n_k; ++k) {
    const Vector<T> row = at(b.memory + k * b.stride);
    const T* column = a.memory + k * a.k_stride;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] += row * column[r * a.row_stride];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) at(c + r * c_stride) = sums[r];
}

template <typename T, bool kAdd>
inline void product_rows(int64_t n_rows, LeftMatrix<T> a, RightMatrix<T> b, T* c, int64_t c_stride,
                         int64_t n_k) {
  switch (n_rows) {
    case 1:
      return product_tile<T, 1, kAdd>(a, b, c, c_stride, n_k);
    case 2:
      return product_tile<T, 2, kAdd>(a, b, c, c_stride, n_k);
    case 3:
      return product_tile<T, 3, kAdd>(a, b, c, c_stride, n_k);
    case 4:
      return product_tile<T, 4, kAdd>(a, b, c, c_stride, n_k);
    case 5:
      return product_tile<T, 5, kAdd>(a, b, c, c_stride, n_k);
    case 6:
      return product_tile<T, 6, kAdd>(a, b, c, c_stride, n_k);
    case 7:
      return product_tile<T, 7, kAdd>(a, b, c, c_stride, n_k);
    default:
      return product_tile<T, 8, kAdd>(a, b, c, c_stride, n_k);
  }
}

// C [n_rows, n_cols] from A [n_rows, n_k] and B [n_k, n_cols]; n_cols are whole vectors.
template <typename T, bool kAdd = false>
inline void product(int64_t n_rows, int64_t n_cols, int64_t n_k, LeftMatrix<T> a, RightMatrix<T> b,
                    T* c, int64_t c_stride) {
  const int64_t n_tiles = (n_rows + kMostRows - 1) / kMostRows;
  for (int64_t col = 0; col < n_cols; col += kLanes<T>) {
    int64_t row = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      const int64_t n = (n_rows - row) / (n_tiles - tile);  // as equal as can be
      product_rows<T, kAdd>(n, {a.memory + row * a.row_stride, a.row_stride, a.k_stride},
                            {b.memory + col, b.stride}, c + row * c_stride + col, c_stride, n_k);
      row += n;
    }
  }
}

}  // namespace limpid::LIMPID_ISA
