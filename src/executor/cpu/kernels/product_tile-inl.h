// The register tile of a product whose right operand lies in rows: y[m, j] += left[m, k] right[k,
// j].
//
// Lanes run along j: one element of `left` is broadcast and multiplied with a row of `right`, and
// no sum crosses lanes. Each element is one chain of multiply-adds in order of k. With 12 x 32
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

// Memory to prefetch while a tile is computed: two lines of the cache every kStretch steps of k,
// at `at`, which then moves by `step` bytes. A core can wait for only a few loads from memory at a
// time. If all lines were prefetched at once, the tile's own loads would have to wait.
struct Ahead {
  const char* at = nullptr;
  int64_t step = 0;
};
inline constexpr int64_t kStretch = 8;

LIMPID_INLINE Ahead lines_of(const float* rows, int64_t step) {
  return {reinterpret_cast<const char*>(rows), step * static_cast<int64_t>(sizeof(float))};
}

struct ProductTile {
  const float* left;  // element (m, k) is left[k * left_step + m]; kTileRows of them are read
  int64_t left_step;
  const float* right;  // [depth, right_step]
  int64_t right_step;
  int64_t depth;
  float* y;  // [n_rows, y_step]
  int64_t y_step;
  int64_t n_rows;    // <= kTileRows are written
  int64_t n_cols;    // <= kTileCols
  const float* add;  // [n_rows, add_step], added to the products; or null
  int64_t add_step;  // 0: the same row for all
  Ahead next_y{};    // kTileRows rows of what the next tile writes
  Ahead next_right{};
};

// The sums of a tile, and the rows of the operands for the next step of k.
template <int kRows>
struct TileSums {
  F32x16 sums[kRows][kTileVectors];
  const float* left;
  const float* right;
};

// A step of k. kWhole: the tile has all columns; otherwise only n_cols of a row of `right` are
// touched.
template <int kRows, bool kWhole>
LIMPID_INLINE void add_step(const ProductTile& t, TileSums<kRows>& s) {
  F32x16 row[kTileVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kTileVectors; ++v)
    row[v] = kWhole ? load(s.right + v * kLanes)
                    : load_partial(s.right + v * kLanes, t.n_cols - v * kLanes);
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) {
    const F32x16 x = broadcast(s.left[m]);
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) s.sums[m][v] = add_product(x, row[v], s.sums[m][v]);
  }
  s.left += t.left_step;
  s.right += t.right_step;
}

// kStretch steps are written out, because the counting of a loop would take slots of the
// multipliers.
template <int kRows, bool kWhole>
LIMPID_INLINE void product_tile(const ProductTile& t) {
  TileSums<kRows> s;
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) s.sums[m][v] = zero();
  }
  s.left = t.left;
  s.right = t.right;
  Ahead ahead = t.next_y;
  int64_t k = 0;
  for (; k + kStretch <= t.depth; k += kStretch) {
    if (k == kTileRows * kStretch) ahead = t.next_right;
    __builtin_prefetch(ahead.at);
    __builtin_prefetch(ahead.at + 64);
    ahead.at += ahead.step;
#pragma GCC unroll 8
    for (int i = 0; i < kStretch; ++i) add_step<kRows, kWhole>(t, s);
  }
  for (; k < t.depth; ++k) add_step<kRows, kWhole>(t, s);
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) {
    if (m >= t.n_rows) break;
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      const int64_t n = kWhole ? kLanes : t.n_cols - v * kLanes;
      if (!kWhole && n <= 0) break;
      if (t.add != nullptr)
        s.sums[m][v] = add(load_at(t.add + m * t.add_step + v * kLanes, 0, n), s.sums[m][v]);
      store_at(s.sums[m][v], t.y + m * t.y_step + v * kLanes, 0, n);
    }
  }
}

// Not inline: there are many instances, and each is long enough for a call.
[[gnu::noinline]] inline void multiply_tile(const ProductTile& t) {
  constexpr int kFewRows = kTileRows > 3 ? kTileRows / 3 : kTileRows;
  if (t.n_cols < kTileCols) {
    product_tile<kTileRows, false>(t);
  } else if (t.n_rows <= kFewRows) {
    product_tile<kFewRows, true>(t);
  } else {
    product_tile<kTileRows, true>(t);
  }
}

// y [n_rows, n_cols] = (or +=) left [n_rows, depth] right [depth, n_cols], all steps given. Reads
// up to kTileRows - 1 elements after the last row of `left`.
inline void multiply_block(const ProductTile& block) {
  ProductTile t = block;
  t.next_y = t.next_right = lines_of(block.y, 0);
  for (int64_t j = 0; j < block.n_cols; j += kTileCols) {
    for (int64_t m = 0; m < block.n_rows; m += kTileRows) {
      t.left = block.left + m;
      t.right = block.right + j;
      t.y = block.y + m * block.y_step + j;
      if (block.add != nullptr) t.add = block.add + m * block.add_step + j;
      t.n_rows = block.n_rows - m < kTileRows ? block.n_rows - m : kTileRows;
      t.n_cols = block.n_cols - j < kTileCols ? block.n_cols - j : kTileCols;
      multiply_tile(t);
    }
  }
}

}  // namespace limpid::LIMPID_ISA
