#include <cmath>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// y = x / sqrt(mean(x^2) + eps) * weight, for one group (Zhang & Sennrich 2019, eq. 4). All [n].
void normalize_group(std::span<const float> x, std::span<const float> weight, float eps,
                     std::span<float> y) {
  double sum_of_squares = 0;
  for (const float value : x) sum_of_squares += static_cast<double>(value) * value;
  const double root = std::sqrt(sum_of_squares / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(x[i] / root * weight[i]);
}

}  // namespace

Activation ReferenceExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  check_rms_norm(x, weight);
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t g = 0; g < x.cols(); g += weight.cols) {
      normalize_group(rows(x)[t].subspan(g, weight.cols), vector(weight), eps,
                      rows(y)[t].subspan(g, weight.cols));
    }
  }
  return y;
}

}  // namespace limpid
