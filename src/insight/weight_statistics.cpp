#include "insight/weight_statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace limpid {
namespace {

constexpr double kHalfWidth = 4;  // of the histogram, in root mean squares
constexpr int kIterations = 8;
constexpr int kBlock = 8;  // vectors that are iterated together

// Eight vectors side by side: row i holds element i of each. One vector alone would find the
// largest singular value only, and slowly where the second is almost as large. A block of eight
// finds eight, and the first of them sooner.
using Row = std::array<float, kBlock>;
using Block = std::vector<Row>;

// Numbers that look random and are the same everywhere (a linear congruential generator; Knuth,
// The Art of Computer Programming, volume 2).
Block starting_block(int64_t n) {
  uint64_t state = 1;
  Block block(static_cast<size_t>(n));
  for (Row& row : block) {
    for (float& value : row) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      value = static_cast<float>(static_cast<double>(state >> 40U) / 16777216.0 - 0.5);
    }
  }
  return block;
}

// y = W x
Block times(std::span<const float> w, const Block& x, int64_t n_rows, ThreadPool& pool) {
  Block y(static_cast<size_t>(n_rows));
  const size_t n_cols = x.size();
  pool.for_each(n_rows, 16, [&](int64_t i) {
    Row sum{};
    const float* row = w.data() + static_cast<size_t>(i) * n_cols;
    for (size_t j = 0; j < n_cols; ++j) {
      for (int k = 0; k < kBlock; ++k) sum[k] += row[j] * x[j][k];
    }
    y[static_cast<size_t>(i)] = sum;
  });
  return y;
}

// x = W^T y. Threads share out the columns, so that sums have one order.
Block transposed_times(std::span<const float> w, const Block& y, int64_t n_cols, ThreadPool& pool) {
  Block x(static_cast<size_t>(n_cols));
  pool.for_ranges(n_cols, 64, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (size_t i = 0; i < y.size(); ++i) {
      const float* row = w.data() + i * static_cast<size_t>(n_cols);
      for (auto j = static_cast<size_t>(begin); j < static_cast<size_t>(end); ++j) {
        for (int k = 0; k < kBlock; ++k) x[j][k] += row[j] * y[i][k];
      }
    }
  });
  return x;
}

double product(const Block& x, int a, int b) {
  return std::accumulate(x.begin(), x.end(), 0.0, [&](double sum, const Row& row) {
    return sum + static_cast<double>(row[a]) * row[b];
  });
}

// Gram-Schmidt, twice, so that rounding leaves the vectors orthogonal. A vector that depends on
// those before it becomes zero.
void orthonormalize(Block& x) {
  for (int k = 0; k < kBlock; ++k) {
    const double before = std::sqrt(product(x, k, k));
    for (int pass = 0; pass < 2; ++pass) {
      for (int other = 0; other < k; ++other) {
        const auto share = static_cast<float>(product(x, k, other));
        for (Row& row : x) row[k] -= share * row[other];
      }
    }
    const double norm = std::sqrt(product(x, k, k));
    const bool depends = norm <= 1e-6 * before || norm == 0;
    for (Row& row : x) row[k] = depends ? 0 : static_cast<float>(row[k] / norm);
  }
}

using Square = std::array<std::array<double, kBlock>, kBlock>;

// Eigenvalues of a symmetric matrix by rotations that zero one element after another (Jacobi 1846).
std::array<double, kBlock> eigenvalues(Square a) {
  for (int sweep = 0; sweep < 30; ++sweep) {
    for (int p = 0; p < kBlock; ++p) {
      for (int q = p + 1; q < kBlock; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = 0.5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]);
        const double c = std::cos(theta);
        const double s = std::sin(theta);
        const auto rotate = [c, s](double& x, double& y) {
          std::tie(x, y) = std::pair(c * x - s * y, s * x + c * y);
        };
        for (auto& row : a) rotate(row[p], row[q]);
        for (int k = 0; k < kBlock; ++k) rotate(a[p][k], a[q][k]);
      }
    }
  }
  std::array<double, kBlock> values{};
  for (int k = 0; k < kBlock; ++k) values[k] = a[k][k];
  return values;
}

// Multiplying by W^T W over and over turns any vectors towards the directions that W stretches
// most. In the space of the last ones, the eigenvalues of (W x)^T (W x) are squares of singular
// values.
std::vector<double> singular_values(std::span<const float> w, int64_t n_rows, int64_t n_cols,
                                    int n_wanted, ThreadPool& pool) {
  Block x = starting_block(n_cols);
  orthonormalize(x);
  Block y;
  for (int i = 0; i < kIterations; ++i) {
    y = times(w, x, n_rows, pool);
    orthonormalize(y);
    x = transposed_times(w, y, n_cols, pool);
    orthonormalize(x);
  }
  y = times(w, x, n_rows, pool);
  Square squares{};
  for (int a = 0; a < kBlock; ++a) {
    for (int b = 0; b < kBlock; ++b) squares[a][b] = product(y, a, b);
  }
  std::vector<double> values;
  for (const double value : eigenvalues(squares)) values.push_back(std::sqrt(std::max(0.0, value)));
  std::ranges::sort(values, std::ranges::greater());
  values.resize(static_cast<size_t>(std::min<int64_t>({n_wanted, kBlock, n_rows, n_cols})));
  return values;
}

}  // namespace

WeightStatistics weight_statistics(std::span<const float> values, int64_t n_rows, int64_t n_cols,
                                   int n_singular, ThreadPool& pool) {
  WeightStatistics result;
  result.n = std::ssize(values);
  double squares = 0;
  for (const float value : values) {
    result.mean += value;
    squares += static_cast<double>(value) * value;
    result.largest = std::max<double>(result.largest, std::abs(value));
  }
  if (values.empty()) return result;
  result.mean /= static_cast<double>(result.n);
  result.root_mean_square = std::sqrt(squares / static_cast<double>(result.n));
  // Bins are measured in root mean squares, so that tensors of any scale have comparable shapes:
  // normal numbers look alike, and what is beyond the ends is counted in the outermost bins.
  const double width = 2 * kHalfWidth * result.root_mean_square / WeightStatistics::kBins;
  for (const float value : values) {
    double bin = width > 0 ? value / width + WeightStatistics::kBins / 2.0 : 0;
    if (std::isnan(bin)) bin = value > 0 ? WeightStatistics::kBins - 1 : 0;  // inf / inf
    ++result.histogram[static_cast<size_t>(
        std::clamp(bin, 0.0, static_cast<double>(WeightStatistics::kBins - 1)))];
  }
  // Products with unit vectors are at most ||W||_F, so f32 holds them if it holds ||W||_F.
  const bool fits = std::sqrt(squares) <= std::numeric_limits<float>::max();  // not if NaN
  if (n_rows < 2 || n_cols < 2 || !fits || squares == 0) return result;
  result.singular_values = singular_values(values, n_rows, n_cols, n_singular, pool);
  // ||W||_F^2 / s_1^2: 1 if one direction holds all of the matrix, the number of rows if all are
  // equally strong (Rudelson & Vershynin 2007, arXiv:math/0503442).
  result.stable_rank = squares / (result.singular_values[0] * result.singular_values[0]);
  return result;
}

void Distance::add(std::span<const float> a, std::span<const float> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i];
    const double d = static_cast<double>(b[i]) - x;
    size += x * x;
    difference += d * d;
  }
}

double Distance::value() const { return difference == 0 ? 0 : std::sqrt(difference / size); }

double relative_difference(std::span<const float> a, std::span<const float> b) {
  Distance distance;
  distance.add(a, b);
  return distance.value();
}

}  // namespace limpid
