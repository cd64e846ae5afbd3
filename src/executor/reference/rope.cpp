#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// Rotates the leading n_rot elements of one head (Su et al. 2021), half-split pairs. cos, sin
// [n_rot / 2].
void rotate(std::span<const float> x, std::span<const double> cos, std::span<const double> sin,
            std::span<float> y) {
  const size_t half = cos.size();
  for (size_t i = 0; i < half; ++i) {
    const double a = x[i];
    const double b = x[i + half];
    y[i] = static_cast<float>(a * cos[i] - b * sin[i]);
    y[i + half] = static_cast<float>(a * sin[i] + b * cos[i]);
  }
  for (size_t i = 2 * half; i < x.size(); ++i) y[i] = x[i];
}

}  // namespace

Activation ReferenceExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const RopeTableData& angles = rope_tables_[table.id];
  const auto half = static_cast<size_t>(table.n_rot / 2);
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const size_t at = static_cast<size_t>(inputs_.positions[t]) * half;
    const std::span cos(angles.cos.data() + at, half);
    const std::span sin(angles.sin.data() + at, half);
    for (int64_t h = 0; h < x.cols(); h += head_dim) {
      rotate(rows(x)[t].subspan(h, head_dim), cos, sin, rows(y)[t].subspan(h, head_dim));
    }
  }
  return y;
}

}  // namespace limpid
