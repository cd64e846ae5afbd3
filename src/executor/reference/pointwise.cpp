#include <cmath>
#include <numbers>

#include "executor/reference/ops.h"

namespace limpid::reference {
namespace {

double silu(double x) { return x / (1.0 + std::exp(-x)); }

// Hendrycks & Gimpel 2016, the tanh approximation that GPT-2 uses.
double gelu_tanh(double x) {
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

double gelu_erf(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }

}  // namespace

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

float unary(UnaryKind kind, float x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return static_cast<float>(silu(x));
    case UnaryKind::kGeluTanh:
      return static_cast<float>(gelu_tanh(x));
    case UnaryKind::kGeluErf:
      return static_cast<float>(gelu_erf(x));
    case UnaryKind::kRelu:
      return x > 0 ? x : 0;
  }
  return x;
}

}  // namespace limpid::reference
