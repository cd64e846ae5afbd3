#include <cmath>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

// y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias. The mean is 0 unless `centred`
// (RMSNorm, Zhang & Sennrich 2019, eq. 4); with it this is LayerNorm (Ba et al. 2016), with biased
// variance. All [n]; bias may be empty.
void normalize(std::span<const float> x, std::span<const float> weight, std::span<const float> bias,
               float eps, bool centred, std::span<float> y) {
  const auto n = static_cast<double>(x.size());
  double sum = 0;
  if (centred) {
    for (const float value : x) sum += value;
  }
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

Activation ReferenceExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  check_rms_norm(x, weight);
  return norm(x, weight, {}, eps, false);
}

Activation ReferenceExecutor::layer_norm(const Activation& x, const Weight& weight,
                                         const Weight& bias, float eps) {
  check_vector("layer_norm", weight, x.cols());
  return norm(x, weight, bias, eps, true);
}

Activation ReferenceExecutor::norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps, bool centred) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t g = 0; g < x.cols(); g += weight.cols) {
      normalize(rows(x)[t].subspan(g, weight.cols), vector(weight), vector(bias), eps, centred,
                rows(y)[t].subspan(g, weight.cols));
    }
  }
  return y;
}

}  // namespace limpid
