#include <algorithm>
#include <array>
#include <vector>

#include "base/divide_up.h"
#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

using reference::Rows;

// Tokens whose sums run side by side; each still adds along k in order.
constexpr int64_t kTile = 8;

// sums[i] = w . x_columns[., i], where x_columns is [k, kTile].
std::array<double, kTile> dot_columns(std::span<const float> w, const double* x_columns) {
  std::array<double, kTile> sums{};
  for (size_t k = 0; k < w.size(); ++k) {
    const double weight = w[k];
    for (int64_t i = 0; i < kTile; ++i) sums[i] += weight * x_columns[k * kTile + i];
  }
  return sums;
}

// x as tiles of kTile tokens: [n_tiles][k][kTile], in f64, absent tokens zero.
std::vector<double> transpose_to_tiles(Rows x) {
  const int64_t n_tiles = divide_up(x.n_rows, kTile);
  std::vector<double> tiles(static_cast<size_t>(n_tiles * kTile * x.n_cols), 0.0);
  for (int64_t t = 0; t < x.n_rows; ++t) {
    double* tile = tiles.data() + t / kTile * kTile * x.n_cols;
    for (int64_t k = 0; k < x.n_cols; ++k) tile[k * kTile + t % kTile] = x[t][k];
  }
  return tiles;
}

// y[t, r] = x[t] . W[row r] + bias[r], r the canonical output row of W's stored row (see RowOrder).
//   x [n_tokens, k] · weight [n, k], any dtype · bias [n] or empty · y [n_tokens, n]
void multiply(Rows x, const WeightSource& weight, std::span<const float> bias, Rows y,
              ThreadPool& pool) {
  const std::vector<double> tiles = transpose_to_tiles(x);
  const StoredRows stored(weight);
  pool.for_ranges(weight.tensor.shape.rows(), 16, [&](int64_t begin, int64_t end, int /*thread*/) {
    std::vector<float> row(static_cast<size_t>(x.n_cols));
    for (int64_t r = begin; r < end; ++r) {
      decode_row(weight.tensor.dtype, stored.row(r), row);
      const int64_t out = weight.row_order == RowOrder::kHalfSplit
                              ? r
                              : half_split_row(r, weight.head_dim, weight.head_dim);
      for (int64_t t = 0; t < x.n_rows; t += kTile) {
        const std::array<double, kTile> sums = dot_columns(row, tiles.data() + t * x.n_cols);
        for (int64_t i = 0; i < std::min(kTile, x.n_rows - t); ++i) {
          y[t + i][out] = static_cast<float>(bias.empty() ? sums[i] : sums[i] + bias[out]);
        }
      }
    }
  });
}

}  // namespace

void ReferenceExecutor::linear(const Activation& x, std::span<Projection> projections) {
  for (Projection& p : projections) {
    check_linear("linear", x, p);
    p.y = allocate(x.rows(), p.weight.rows);
    multiply(rows(x), weights_[p.weight.id].source, vector(p.bias), rows(p.y), pool_);
  }
}

}  // namespace limpid
