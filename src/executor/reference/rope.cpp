#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// Rotates the leading n_rot elements of one head (Su et al. 2021), half-split pairs. cos, sin
// [n_rot / 2].
void rotate_head(std::span<const float> x, std::span<const double> cos, std::span<const double> sin,
                 double direction, std::span<float> y) {
  const size_t half = cos.size();
  for (size_t i = 0; i < half; ++i) {
    const double a = x[i];
    const double b = x[i + half];
    const double s = direction * sin[i];
    y[i] = static_cast<float>(a * cos[i] - b * s);
    y[i + half] = static_cast<float>(a * s + b * cos[i]);
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
  const RopeTableData& angles = rope_tables_[table.id];
  const auto half = static_cast<size_t>(table.n_rot / 2);
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const size_t at = static_cast<size_t>(inputs_.positions[t]) * half;
    const std::span cos(angles.cos.data() + at, half);
    const std::span sin(angles.sin.data() + at, half);
    for (int64_t h = 0; h < x.cols(); h += head_dim) {
      rotate_head(rows(x)[t].subspan(h, head_dim), cos, sin, direction,
                  rows(y)[t].subspan(h, head_dim));
    }
  }
  return y;
}

}  // namespace limpid
