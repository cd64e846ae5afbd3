// Two traces side by side: where the first departs from the second.
#pragma once

#include <cstdint>
#include <optional>
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
  // The largest |x - r| of any element, divided by the root mean square of the reference's row, so
  // that no token hides behind another's size. Infinite where either is not finite and they differ.
  double error = 0;
  int64_t token = 0;  // where it is
  int64_t element = 0;
};

struct Comparison {
  std::vector<ActivationError> activations;  // those that both traces have, in order
  std::vector<std::string> missing;          // names in the reference alone

  // The first activation whose error is above `tolerance`.
  const ActivationError* first_departure(double tolerance) const;
  // The one with the largest error.
  const ActivationError* worst() const;
};

// Throws ArgumentError when the traces are of different tokens or share no activation, ShapeError
// naming an activation of another shape.
Comparison compare_traces(const Trace& trace, const Trace& reference);

}  // namespace limpid
