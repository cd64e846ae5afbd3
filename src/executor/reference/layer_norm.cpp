#include <cmath>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance (Ba et al. 2016). All [n]; bias
// may be empty.
void normalize_row(std::span<const float> x, std::span<const float> weight,
                   std::span<const float> bias, float eps, std::span<float> y) {
  const auto n = static_cast<double>(x.size());
  double sum = 0;
  for (const float value : x) sum += value;
  const double mean = sum / n;
  double sum_of_squares = 0;
  for (const float value : x) sum_of_squares += (value - mean) * (value - mean);
  const double root = std::sqrt(sum_of_squares / n + eps);
  for (size_t i = 0; i < x.size(); ++i) {
    const double normed = (x[i] - mean) / root * weight[i];
    y[i] = static_cast<float>(bias.empty() ? normed : normed + bias[i]);
  }
}

}  // namespace

Activation ReferenceExecutor::layer_norm(const Activation& x, const Weight& weight,
                                         const Weight& bias, float eps) {
  check_vector("layer_norm", weight, x.cols());
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    normalize_row(rows(x)[t], vector(weight), vector(bias), eps, rows(y)[t]);
  }
  return y;
}

}  // namespace limpid
