// The register tile of a product whose right operand lies in rows: y[m, j] += left[m, k] right[k,
// j].
//
// Lanes run along j, so one element of `left` is broadcast and meets a row of `right`, and nothing
// is folded at the end. Each element is one chain of multiply-adds in order of k. With 12 x 32
// elements an AVX-512 tile holds 24 sums in registers; a step of k loads 2 vectors and 12 numbers
// for 24 multiply-adds, so that the multipliers, and not the loads, set the pace.
#pragma once

#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

#if LIMPID_ISA_scalar
inline constexpr int kTileRows = 1, kTileVectors = 1;
#elif defined(__AVX512F__)
inline constexpr int kTileRows = 12, kTileVectors = 2;
#else
inline constexpr int kTileRows = 6, kTileVectors = 1;
#endif
inline constexpr int kTileCols = kTileVectors * kLanes;

struct ProductTile {
  const float* left;  // element (m, k) is left[k * left_step + m]; kTileRows of them are read
  int64_t left_step;
  const float* right;  // [depth, right_step]
  int64_t right_step;
  int64_t depth;
  float* y;  // [n_rows, y_step]
  int64_t y_step;
  int64_t n_rows;  // <= kTileRows are written
  int64_t n_cols;  // <= kTileCols
  bool add;        // to what y has
};

// kWhole: all columns are there; otherwise only n_cols of a row of `right` and of y are touched.
// What y has is added last: its lines come from memory while the products are summed.
template <bool kWhole>
LIMPID_INLINE void product_tile(const ProductTile& t) {
  if (t.add) {
    for (int64_t m = 0; m < t.n_rows; ++m) {
      for (int v = 0; v < kTileVectors; ++v) __builtin_prefetch(t.y + m * t.y_step + v * kLanes, 1);
    }
  }
  F32x16 sums[kTileRows][kTileVectors];
#pragma GCC unroll 12
  for (int m = 0; m < kTileRows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) sums[m][v] = zero();
  }
  const float* left = t.left;
  const float* right = t.right;
  for (int64_t k = 0; k < t.depth; ++k, left += t.left_step, right += t.right_step) {
    F32x16 row[kTileVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v)
      row[v] = kWhole ? load(right + v * kLanes)
                      : load_partial(right + v * kLanes, t.n_cols - v * kLanes);
#pragma GCC unroll 12
    for (int m = 0; m < kTileRows; ++m) {
      const F32x16 x = broadcast(left[m]);
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) sums[m][v] = fma(x, row[v], sums[m][v]);
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < kTileRows; ++m) {
    if (m >= t.n_rows) break;
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      float* to = t.y + m * t.y_step + v * kLanes;
      if (kWhole) {
        store(t.add ? add(load(to), sums[m][v]) : sums[m][v], to);
      } else if (const int64_t n = t.n_cols - v * kLanes; n > 0) {
        store_at(t.add ? add(load_partial(to, n), sums[m][v]) : sums[m][v], to, 0, n);
      }
    }
  }
}

// Not inline: the tiles are many, and each is work enough for a call.
[[gnu::noinline]] inline void multiply_tile(const ProductTile& t) {
  t.n_cols >= kTileCols ? product_tile<true>(t) : product_tile<false>(t);
}

// y [n_rows, n_cols] = (or +=) left [n_rows, depth] right [depth, n_cols], all steps given. Reads
// up to kTileRows - 1 elements behind the last row of `left`.
inline void multiply_block(ProductTile block) {
  ProductTile t = block;
  for (int64_t j = 0; j < block.n_cols; j += kTileCols) {
    for (int64_t m = 0; m < block.n_rows; m += kTileRows) {
      t.left = block.left + m;
      t.right = block.right + j;
      t.y = block.y + m * block.y_step + j;
      t.n_rows = block.n_rows - m < kTileRows ? block.n_rows - m : kTileRows;
      t.n_cols = block.n_cols - j < kTileCols ? block.n_cols - j : kTileCols;
      multiply_tile(t);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
