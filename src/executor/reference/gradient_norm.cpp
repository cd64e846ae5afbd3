// Backward of RMSNorm and LayerNorm. Both divide centred numbers c by r = sqrt(mean(c^2) + eps);
// RMSNorm's c is x itself, LayerNorm's is x - mean(x). With n = c / r and g = dy * weight, the
// derivative of r takes n * mean(g * n) away, and the derivative of the mean takes mean(g) away.
#include <cmath>

#include "executor/reference/reference_gradients.h"

namespace limpid {
namespace {

struct Group {
  std::span<const float> x, weight, dy;
  std::span<float> dx;
  double* dweight = nullptr;  // or null: not wanted
  double* dbias = nullptr;
};

void normalize_backward(const Group& group, float eps, bool centred) {
  const size_t n = group.x.size();
  const auto size = static_cast<double>(n);
  double mean = 0;
  if (centred) {
    for (const float value : group.x) mean += value;
    mean /= size;
  }
  double squares = 0;
  for (const float value : group.x) squares += (value - mean) * (value - mean);
  const double r = std::sqrt(squares / size + eps);
  double mean_g = 0;
  double mean_gn = 0;
  for (size_t i = 0; i < n; ++i) {
    const double g = static_cast<double>(group.dy[i]) * group.weight[i];
    mean_g += g / size;
    mean_gn += g * (group.x[i] - mean) / r / size;
  }
  for (size_t i = 0; i < n; ++i) {
    const double normal = (group.x[i] - mean) / r;
    const double g = static_cast<double>(group.dy[i]) * group.weight[i];
    group.dx[i] = static_cast<float>((g - (centred ? mean_g : 0.0) - normal * mean_gn) / r);
    if (group.dweight != nullptr) group.dweight[i] += group.dy[i] * normal;
    if (group.dbias != nullptr) group.dbias[i] += group.dy[i];
  }
}

}  // namespace

Activation ReferenceGradients::norm(const Activation& x, const Weight& weight, const Weight& bias,
                                    float eps, bool centred, const Activation& dy) {
  Sums dweight(*this, weight);
  Sums dbias(*this, bias);
  Activation dx = ex_.allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t at = 0; at < x.cols(); at += weight.cols) {
      normalize_backward(
          {ex_.rows(x)[t].subspan(at, weight.cols), ex_.vector(weight),
           ex_.rows(dy)[t].subspan(at, weight.cols), ex_.rows(dx)[t].subspan(at, weight.cols),
           dweight ? dweight.row(0) : nullptr, dbias ? dbias.row(0) : nullptr},
          eps, centred);
    }
  }
  return dx;
}

}  // namespace limpid
