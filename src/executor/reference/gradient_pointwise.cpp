// Backward of the functions of one element; dropout and numbers in 16 bits.
#include <cmath>
#include <numbers>

#include "executor/reference/reference_gradients.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double silu_derivative(double x) {
  const double s = logistic(x);
  return s + x * s * (1.0 - s);
}

// Of x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
double gelu_tanh_derivative(double x) {
  const double root = std::sqrt(2.0 / std::numbers::pi);
  const double tanh = std::tanh(root * (x + 0.044715 * x * x * x));
  const double du = root * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * du;
}

// Of x Phi(x): Phi(x) + x phi(x), phi the density of the normal distribution.
double gelu_erf_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

double derivative(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return silu_derivative(x);
    case UnaryKind::kGeluTanh:
      return gelu_tanh_derivative(x);
    case UnaryKind::kGeluErf:
      return gelu_erf_derivative(x);
    case UnaryKind::kRelu:
      return x > 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace

Activation ReferenceGradients::unary(UnaryKind kind, const Activation& x, const Activation& dy) {
  Activation dx = ex_.allocate(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows() * x.cols(); ++i) {
    ex_.rows(dx).data[i] =
        static_cast<float>(ex_.rows(dy).data[i] * derivative(kind, ex_.rows(x).data[i]));
  }
  return dx;
}

SwigluGradients ReferenceGradients::swiglu(const Activation& gate, const Activation& up,
                                           const Activation& dy) {
  SwigluGradients result{ex_.allocate(gate.rows(), gate.cols()),
                         ex_.allocate(gate.rows(), gate.cols())};
  for (int64_t i = 0; i < gate.rows() * gate.cols(); ++i) {
    const double g = ex_.rows(gate).data[i];
    const double slope = ex_.rows(dy).data[i];
    ex_.rows(result.dgate).data[i] =
        static_cast<float>(slope * ex_.rows(up).data[i] * silu_derivative(g));
    ex_.rows(result.dup).data[i] = static_cast<float>(slope * g * logistic(g));
  }
  return result;
}

Activation ReferenceGradients::dropout(const Activation& x, const Dropout& dropout) {
  Activation y = ex_.allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = ex_.rows(y)[t];
    dropout_factors(dropout, t, 0, x.cols(), row.data());
    for (int64_t i = 0; i < x.cols(); ++i) row[i] *= ex_.rows(x)[t][i];
  }
  return y;
}

// Two numbers of a row in the place of one.
Activation ReferenceGradients::narrow(const Activation& x, DType dtype) {
  Activation y = ex_.allocate(x.rows(), (x.cols() + 1) / 2);
  for (int64_t t = 0; t < x.rows(); ++t)
    encode_row(dtype, ex_.rows(x)[t], std::as_writable_bytes(ex_.rows(y)[t]).data());
  return y;
}

Activation ReferenceGradients::widen(const Activation& narrow, int64_t cols, DType dtype) {
  Activation y = ex_.allocate(narrow.rows(), cols);
  for (int64_t t = 0; t < y.rows(); ++t)
    decode_row(dtype, std::as_bytes(ex_.rows(narrow)[t]).data(), ex_.rows(y)[t]);
  return y;
}

}  // namespace limpid
