// Compares two traces and finds where the first one departs from the second. The first activation
// that departs shows which op is wrong: the activations before it agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "insight/trace.h"

namespace limpid {

// How far one activation is from the reference's.
struct ActivationError {
  std::string what;
  int64_t layer = -1;
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  // The largest ||x - r|| / ||r|| of any row, with Euclidean norms. Each token is measured by its
  // own size, so a token with large values does not hide another's error. Infinite when x or r has
  // a value that is not finite, also when both have it.
  double error = 0;
  int64_t token = 0;    // the row of the largest error
  int64_t element = 0;  // the column with the largest difference in it
  float value = 0;      // of x there
  float reference = 0;  // of r there
};

// The errors of all activations, in the order of the computation.
struct Comparison {
  std::vector<ActivationError> activations;  // the activations that both traces have
  std::vector<std::string> missing;          // names that only the reference has

  // The first activation whose error is above `tolerance`; null if there is none.
  const ActivationError* first_departure(double tolerance) const;
  // The activation with the largest error; null if there is none.
  const ActivationError* worst() const;
};

// Throws ArgumentError when the traces are of different tokens or share no activation, and
// ShapeError, which names the activation, when one has another shape.
Comparison compare_traces(const Trace& trace, const Trace& reference);

}  // namespace limpid
