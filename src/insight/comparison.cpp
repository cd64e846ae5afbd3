#include "insight/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "base/check.h"

namespace limpid {
namespace {

// The size of a row: sqrt(mean of squares).
double root_mean_square(std::span<const float> row) {
  double sum = 0;
  for (const float value : row) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(row.size()));
}

// 0 for equal values and for two NaNs; infinite when the error is not finite.
double relative_error(double x, double reference, double size) {
  if (x == reference || (std::isnan(x) && std::isnan(reference))) return 0;
  const double error = std::abs(x - reference) / size;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// The largest error of one activation [n_rows, n_cols], and where it is.
ActivationError compare(const Observation& mine, const Observation& reference) {
  ActivationError worst{mine.what, mine.layer, mine.n_rows, mine.n_cols, 0, 0, 0};
  const auto n_cols = static_cast<size_t>(mine.n_cols);
  for (int64_t row = 0; row < mine.n_rows; ++row) {
    const auto begin = static_cast<size_t>(row) * n_cols;
    const auto x = std::span(mine.values).subspan(begin, n_cols);
    const auto r = std::span(reference.values).subspan(begin, n_cols);
    const double size = root_mean_square(r);
    for (size_t i = 0; i < n_cols; ++i) {
      const double error = relative_error(x[i], r[i], size);
      if (error <= worst.error) continue;
      worst.error = error;
      worst.token = row;
      worst.element = static_cast<int64_t>(i);
    }
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
