// What the weights of a tensor look like: their sizes, their distribution, and how many directions
// a matrix really uses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace limpid {

struct WeightStatistics {
  static constexpr int kBins = 24;

  int64_t n = 0;
  double mean = 0;
  double root_mean_square = 0;
  double largest = 0;  // |w|
  // How many weights lie in each of kBins equal intervals of [-4, 4] root mean squares; those
  // outside are counted in the outermost. A bell curve is what training usually leaves.
  std::array<int64_t, kBins> histogram{};
  // The largest singular values, descending; empty for vectors. A matrix maps the unit ball to an
  // ellipsoid, and these are its longest half axes.
  std::vector<double> singular_values;
  // ||W||_F^2 / sigma_1^2: how many directions matter, at most the rank (Rudelson & Vershynin
  // 2007).
  double stable_rank = 0;
};

// values [n_rows, n_cols] row by row. The `n_singular` largest singular values come from subspace
// iteration with a few vectors more (Halko et al. 2011, arXiv:0909.4061, algorithm 4.4): exact for
// a spectrum that falls steeply, and within a few percent too small for a flat one.
WeightStatistics weight_statistics(std::span<const float> values, int64_t n_rows, int64_t n_cols,
                                   int n_singular, ThreadPool& pool);

// How far b is from a, as a share of the length of a: ||b - a|| / ||a||, over all that is added.
struct Distance {
  double size = 0;  // sums of squares: of a, and of b - a
  double difference = 0;

  void add(std::span<const float> a, std::span<const float> b);
  double value() const;
};
// The same of two tensors of one size; 0 where both are zeros.
double relative_difference(std::span<const float> a, std::span<const float> b);

}  // namespace limpid
