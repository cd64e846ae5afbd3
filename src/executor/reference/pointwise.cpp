// Ops on elements: each result depends on the same element of the operands only.
#include <cmath>
#include <numbers>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"

namespace limpid {
namespace {

double silu(double x) { return x / (1.0 + std::exp(-x)); }

// Hendrycks & Gimpel 2016, the tanh approximation that GPT-2 uses.
double gelu_tanh(double x) {
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

double gelu_erf(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }

float value_of(UnaryKind kind, float x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return static_cast<float>(silu(x));
    case UnaryKind::kGeluTanh:
      return static_cast<float>(gelu_tanh(x));
    case UnaryKind::kGeluErf:
      return static_cast<float>(gelu_erf(x));
    case UnaryKind::kRelu:
      return x < 0 ? 0 : x;  // NaN stays
  }
  return x;
}

}  // namespace

Activation ReferenceExecutor::add(const Activation& a, const Activation& b) {
  check_same_shape("add", a, b);
  Activation y = allocate(a.rows(), a.cols());
  const int64_t n = a.rows() * a.cols();
  for (int64_t i = 0; i < n; ++i) rows(y).data[i] = rows(a).data[i] + rows(b).data[i];
  return y;
}

Activation ReferenceExecutor::scale(const Activation& x, float factor) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows() * x.cols(); ++i) rows(y).data[i] = rows(x).data[i] * factor;
  return y;
}

Activation ReferenceExecutor::swiglu(const Activation& gate, const Activation& up) {
  check_same_shape("swiglu", gate, up);
  Activation y = allocate(gate.rows(), gate.cols());
  for (int64_t i = 0; i < gate.rows() * gate.cols(); ++i) {
    rows(y).data[i] = value_of(UnaryKind::kSilu, rows(gate).data[i]) * rows(up).data[i];
  }
  return y;
}

Activation ReferenceExecutor::unary(UnaryKind kind, const Activation& x) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows() * x.cols(); ++i)
    rows(y).data[i] = value_of(kind, rows(x).data[i]);
  return y;
}

}  // namespace limpid
