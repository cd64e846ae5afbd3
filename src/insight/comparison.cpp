#include "insight/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace limpid {
namespace {

// Infinite when one of the two is not finite: a NaN beside a NaN does not count as agreement, since
// nothing is known about the values that should have been there.
double difference(double x, double reference) {
  const double difference = std::abs(x - reference);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

// The largest error of the rows of one activation [n_rows, n_cols], and where it is.
//
// Both norms of a row are sums over all of its elements. A row may have a few elements that are a
// hundred times as large as the others, as those of the first token have; a small relative error of
// such an element is large compared with the other elements, but small compared with the row.
ActivationError compare(const Observation& mine, const Observation& reference) {
  ActivationError worst{mine.what, mine.layer, mine.n_rows, mine.n_cols};
  const auto n_cols = static_cast<size_t>(mine.n_cols);
  for (int64_t row = 0; row < mine.n_rows; ++row) {
    const size_t begin = static_cast<size_t>(row) * n_cols;
    double of_difference = 0, of_reference = 0;  // sums of squares
    double largest = 0;
    size_t element = 0;
    for (size_t i = 0; i < n_cols; ++i) {
      const double r = reference.values[begin + i];
      const double d = difference(mine.values[begin + i], r);
      of_difference += d * d;
      if (std::isfinite(r)) of_reference += r * r;
      if (d <= largest) continue;
      largest = d;
      element = i;
    }
    if (largest == 0) continue;
    const double error = std::sqrt(of_difference / of_reference);
    if (error <= worst.error) continue;
    worst.error = error;
    worst.token = row;
    worst.element = static_cast<int64_t>(element);
    worst.value = mine.values[begin + element];
    worst.reference = reference.values[begin + element];
  }
  return worst;
}

}  // namespace

// The comparison is negated so that a NaN would count as a departure.
const ActivationError* Comparison::first_departure(double tolerance) const {
  const auto found = std::ranges::find_if(
      activations, [&](const ActivationError& each) { return !(each.error <= tolerance); });
  return found == activations.end() ? nullptr : &*found;
}

const ActivationError* Comparison::worst() const {
  const auto found = std::ranges::max_element(activations, {}, &ActivationError::error);
  return found == activations.end() ? nullptr : &*found;
}

// Activations are matched by name. Those that only `trace` has are skipped: another engine may show
// fewer. Those that only `reference` has are listed.
Comparison compare_traces(const Trace& trace, const Trace& reference) {
  LIMPID_CHECK(ArgumentError, trace.token_ids == reference.token_ids,
               "the two traces are of different tokens ({} and {})", trace.token_ids.size(),
               reference.token_ids.size());
  std::map<std::string, const Observation*> by_name;
  for (const Observation& seen : reference.observations) by_name[trace_name(seen)] = &seen;
  Comparison comparison;
  for (const Observation& mine : trace.observations) {
    const auto found = by_name.find(trace_name(mine));
    if (found == by_name.end()) continue;
    const Observation& other = *found->second;
    LIMPID_CHECK(ShapeError, mine.n_rows == other.n_rows && mine.n_cols == other.n_cols,
                 "{} is [{}, {}], but [{}, {}] in the reference: not the same model", found->first,
                 mine.n_rows, mine.n_cols, other.n_rows, other.n_cols);
    comparison.activations.push_back(compare(mine, other));
    by_name.erase(found);
  }
  LIMPID_CHECK(ArgumentError, !comparison.activations.empty(),
               "the traces share no activation: nothing to compare");
  for (const auto& [name, seen] : by_name) comparison.missing.push_back(name);
  return comparison;
}

}  // namespace limpid
