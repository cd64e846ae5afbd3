// Backward of `linear`, and the output head with its loss.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_gradients.h"

namespace limpid {
namespace {

// Rows of the head's input whose logits are held at once: 256 rows of Llama 3's 128,256 logits take
// 131 MB. The bits of dW depend on it.
constexpr int64_t kLossRows = 256;

}  // namespace

void CpuGradients::multiply(const LeftMatrix& left, std::span<const MatrixProduct> products) {
  limpid::multiply(ex_.kernels_, ex_.pool_, left, products, scratch_.as<float>().data());
}

MatrixProduct CpuGradients::projection(const Weight& weight, const Weight& bias, float* y) const {
  MatrixProduct product;
  product.right = loaded(weight).tensor.data;
  product.right_type = loaded(weight).tensor.dtype;
  product.right_transposed = true;
  product.right_stride = weight.cols;
  product.cols = weight.rows;
  product.y = y;
  if (bias) product.bias = loaded(bias).vector.data();
  return product;
}

void CpuGradients::project(const Activation& x, std::span<Projection> projections) {
  products_.clear();
  for (Projection& p : projections) {
    check_linear("project", x, p);
    p.y = ex_.allocate(x.rows(), p.weight.rows);
    products_.push_back(projection(p.weight, p.bias, data(p.y)));
  }
  multiply({data(x), x.cols(), x.rows(), x.cols()}, products_);
}

void CpuGradients::add_dx(const Weight& weight, const float* dy, int64_t n_rows, float* dx,
                          bool add) {
  MatrixProduct product;
  product.right = loaded(weight).tensor.data;
  product.right_type = loaded(weight).tensor.dtype;
  product.right_stride = product.cols = weight.cols;
  product.y = dx;
  product.add = add;
  multiply({dy, weight.rows, n_rows, weight.rows}, {&product, 1});
}

void CpuGradients::add_dweight(const Weight& weight, const float* x, const float* dy,
                               int64_t n_rows) {
  const std::span<float> sums = gradient(weight);
  if (sums.empty() || n_rows == 0) return;  // the product of no rows would overwrite nothing
  MatrixProduct product;
  product.right = x;
  product.right_stride = product.cols = weight.cols;
  product.y = sums.data();
  product.add = !take_stale(weight);
  multiply({dy, weight.rows, weight.rows, n_rows, true}, {&product, 1});
}

void CpuGradients::add_dvector(const Weight& vector, const Activation& dy) {
  for_vector(vector, [&](float* sums, int64_t begin, int64_t end) {
    ex_.kernels_.add_rows(data(dy), dy.rows(), dy.cols(), begin, end, sums);
  });
}

Activation CpuGradients::linear(const Activation& x,
                                std::span<const ProjectionGradient> projections, bool want_dx) {
  for (const ProjectionGradient& p : projections) {
    if (keeps_gradient(p.weight)) add_dweight(p.weight, data(x), data(*p.dy), x.rows());
    add_dvector(p.bias, *p.dy);
  }
  if (!want_dx) return {};
  const int64_t n_rows = projections[0].dy->rows();
  Activation dx = ex_.allocate(n_rows, projections[0].weight.cols);
  for (size_t p = 0; p < projections.size(); ++p)
    add_dx(projections[p].weight, data(*projections[p].dy), n_rows, data(dx), p > 0);
  return dx;
}

Activation CpuGradients::cross_entropy(const Activation& x, const Weight& head,
                                       std::span<const LossTarget> targets,
                                       std::span<double> losses, bool want_gradients) {
  LIMPID_CHECK(ShapeError, std::ssize(targets) == x.rows() && losses.size() == targets.size(),
               "[cross_entropy] {} targets and {} losses for {} rows", targets.size(),
               losses.size(), x.rows());
  Activation dx;
  if (want_gradients) dx = like(x);
  for (int64_t first = 0; first < x.rows(); first += kLossRows) {
    const int64_t n = std::min(kLossRows, x.rows() - first);
    const float* rows = data(x) + first * x.cols();
    const Activation z = ex_.allocate(n, head.rows);
    float* logits = data(z);
    const MatrixProduct product = projection(head, {}, logits);
    multiply({rows, x.cols(), n, x.cols()}, {&product, 1});
    ex_.pool_.for_each(n, 1, [&](int64_t t) {
      const auto [token, factor] = targets[static_cast<size_t>(first + t)];
      float* row = logits + t * head.rows;
      const float logit = row[token];
      const SoftmaxSums sums = ex_.kernels_.exponentials(row, head.rows, 1.0F);
      ex_.kernels_.scale_elements(row, factor / sums.sum, head.rows, row);
      row[token] -= factor;
      losses[static_cast<size_t>(first + t)] =
          std::log(static_cast<double>(sums.sum)) + sums.largest - logit;
    });
    if (!want_gradients) continue;
    add_dweight(head, rows, logits, n);
    add_dx(head, logits, n, data(dx) + first * x.cols(), false);
  }
  return dx;
}

}  // namespace limpid
