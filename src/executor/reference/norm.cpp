#include <cmath>

#include "executor/reference/ops.h"

namespace limpid::reference {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps,
              std::span<float> y) {
  double sum_of_squares = 0;
  for (const float value : x) sum_of_squares += static_cast<double>(value) * value;
  const double root = std::sqrt(sum_of_squares / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(x[i] / root * weight[i]);
}

void layer_norm(std::span<const float> x, std::span<const float> weight,
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

}  // namespace limpid::reference
