#include "train/muon.h"

#include <algorithm>
#include <cmath>

#include "executor/cpu/matrix_product.h"

namespace limpid {
namespace {

// Coefficients and number of steps as Jordan published them. A step maps every singular value s of
// x to a s + b s^3 + c s^5. The slope a at 0 is as steep as it can be, so that five steps lift
// values above 0.003 to between about 0.7 and 1.2; they need not come closer to 1.
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;
constexpr int kSteps = 5;
constexpr double kLeastNorm = 1e-7;
constexpr int64_t kElementsPerRange = 1 << 15;

// y[i] = factor * x[i]
void scale(std::span<const float> x, float factor, std::span<float> y, ThreadPool& pool) {
  pool.for_ranges(std::ssize(x), kElementsPerRange,
                  [&](int64_t begin, int64_t end, int /*thread*/) {
                    for (int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
                  });
}

}  // namespace

Muon::Muon(const char* isa)
    : kernels_(*choose_isa(isa).kernels), optimizer_kernels_(optimizer_kernels(isa)) {}

// Newton-Schulz steps (Higham 2008, "Functions of Matrices", section 8.3) of x <- a x + b x (x^T x)
// + c x (x^T x)^2, after x was divided by its Frobenius norm, so that no singular value is larger
// than 1. x has at least as many rows as columns, so x^T x is as small as possible.
void Muon::orthogonalize(int64_t rows, int64_t cols, ThreadPool& pool) {
  const double norm = std::sqrt(sum_of_squares(x_, optimizer_kernels_, pool));
  scale(x_, static_cast<float>(1.0 / std::max(norm, kLeastNorm)), x_, pool);
  next_.resize(x_.size());
  for (std::vector<float>* square : {&gram_, &scaled_, &quadratic_})
    square->resize(static_cast<size_t>(cols * cols));
  scratch_.resize(static_cast<size_t>(multiply_scratch_floats(pool.size())));
  const auto product = [&](const LeftMatrix& left, const std::vector<float>& right,
                           std::vector<float>& y, bool add) {
    const MatrixProduct product{right.data(), cols, cols, y.data(), add};
    multiply(kernels_, pool, left, {&product, 1}, scratch_.data());
  };
  for (int i = 0; i < kSteps; ++i) {
    product({x_.data(), cols, cols, rows, true}, x_, gram_, false);
    scale(gram_, kC, scaled_, pool);
    scale(gram_, kB, quadratic_, pool);
    product({scaled_.data(), cols, cols, cols}, gram_, quadratic_, true);
    scale(x_, kA, next_, pool);
    product({x_.data(), cols, rows, cols}, quadratic_, next_, true);
    std::swap(x_, next_);
  }
}

void Muon::step(const MuonMatrix& matrix, const MuonStep& step, ThreadPool& pool) {
  const int64_t rows = matrix.rows;
  const int64_t cols = matrix.cols;
  const bool wide = cols > rows;
  x_.resize(static_cast<size_t>(rows * cols));
  // Element (r, c) of the matrix in x.
  const auto at = [&](int64_t r, int64_t c) { return wide ? c * rows + r : r * cols + c; };
  const auto for_elements = [&](auto&& body) {
    pool.for_each(rows, std::max<int64_t>(1, kElementsPerRange / cols), [&](int64_t r) {
      for (int64_t c = 0; c < cols; ++c) body(r * cols + c, at(r, c));
    });
  };
  for_elements([&](int64_t i, int64_t to) {
    const float slope = (1.0F - kMuonMomentum) * (step.gradient_scale * matrix.g[i]);
    float& momentum = matrix.m[i];
    momentum = kMuonMomentum * momentum + slope;
    x_[static_cast<size_t>(to)] = kMuonMomentum * momentum + slope;
  });
  orthogonalize(std::max(rows, cols), std::min(rows, cols), pool);
  const float rate =
      step.learning_rate * (0.2F * std::sqrt(static_cast<float>(std::max(rows, cols))));
  for_elements([&](int64_t i, int64_t from) {
    matrix.w[i] = step.decay * matrix.w[i] - rate * x_[static_cast<size_t>(from)];
  });
}

}  // namespace limpid
