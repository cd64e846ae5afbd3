#include <cmath>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// Rotates the leading elements of one head, half-split pairs (Su et al. 2021). The angle of pair i
// is position * inverse_frequencies[i].
void rotate_head(std::span<const float> x, std::span<const double> inverse_frequencies,
                 double position, double direction, std::span<float> y) {
  const size_t half = inverse_frequencies.size();
  for (size_t i = 0; i < half; ++i) {
    const double a = x[i];
    const double b = x[i + half];
    const double c = std::cos(position * inverse_frequencies[i]);
    const double s = direction * std::sin(position * inverse_frequencies[i]);
    y[i] = static_cast<float>(a * c - b * s);
    y[i + half] = static_cast<float>(a * s + b * c);
  }
  for (size_t i = 2 * half; i < x.size(); ++i) y[i] = x[i];
}

}  // namespace

Activation ReferenceExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  check_rope(inputs_, x, table, head_dim, rope_tables_[table.id].n_positions);
  return rotate(x, table, head_dim, 1);
}

Activation ReferenceExecutor::rotate(const Activation& x, const RopeTable& table, int64_t head_dim,
                                     double direction) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t h = 0; h < x.cols(); h += head_dim) {
      rotate_head(rows(x)[t].subspan(h, head_dim), rope_tables_[table.id].inverse,
                  inputs_.positions[t], direction, rows(y)[t].subspan(h, head_dim));
    }
  }
  return y;
}

}  // namespace limpid
