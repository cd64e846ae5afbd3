// Backward of `linear`, and the output head with its loss.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "executor/cpu/cpu_gradients.h"

namespace limpid {
namespace {

// Rows of the head's input whose logits are held at once: 256 rows of Llama 3's 128,256 logits take
// 131 MB. The bits of dW depend on it.
constexpr int64_t kLossRows = 256;

}  // namespace

void CpuGradients::multiply(const MatrixProduct& product) {
  const Activation packed =
      ex_.allocate(1, packed_left_floats(product.left.rows, product.left.depth));
  limpid::multiply(ex_.kernels_, ex_.pool_, product,
                   {data(packed), ex_.linear_scratch(0), kLinearScratch});
}

void CpuGradients::add_dx(const Weight& weight, const Activation& dy, const Activation& dx,
                          bool add) {
  MatrixProduct product;
  product.left = {data(dy), dy.cols(), dy.rows(), weight.rows};
  product.right = loaded(weight).tensor.data;
  product.right_type = float_type(loaded(weight).tensor.dtype);
  product.right_stride = product.cols = weight.cols;
  product.y = data(dx);
  product.add = add;
  multiply(product);
}

void CpuGradients::add_dweight(const Weight& weight, const Activation& x, const Activation& dy) {
  const std::span<float> sums = gradient(weight);
  if (sums.empty()) return;
  MatrixProduct product;
  product.left = {data(dy), dy.cols(), weight.rows, dy.rows(), true};
  product.right = data(x);
  product.right_stride = product.cols = weight.cols;
  product.y = sums.data();
  product.add = true;
  multiply(product);
}

void CpuGradients::add_dvector(const Weight& vector, const Activation& dy) {
  for_vector(vector, [&](float* sums, int64_t begin, int64_t end) {
    ex_.kernels_.add_rows(data(dy), dy.rows(), dy.cols(), begin, end, sums);
  });
}

Activation CpuGradients::linear(const Activation& x,
                                std::span<const ProjectionGradient> projections, bool want_dx) {
  for (const ProjectionGradient& p : projections) {
    add_dweight(p.weight, x, *p.dy);
    add_dvector(p.bias, *p.dy);
  }
  if (!want_dx) return {};
  Activation dx = ex_.allocate(projections[0].dy->rows(), projections[0].weight.cols);
  for (size_t p = 0; p < projections.size(); ++p)
    add_dx(projections[p].weight, *projections[p].dy, dx, p > 0);
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
    const Activation rows = ex_.allocate(n, x.cols());
    std::copy_n(data(x) + first * x.cols(), n * x.cols(), data(rows));
    Projection projection{head, {}, {}};
    ex_.linear(rows, {&projection, 1});
    float* logits = data(projection.y);
    ex_.pool_.for_ranges(n, 1, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t t = begin; t < end; ++t) {
        const auto [token, factor] = targets[static_cast<size_t>(first + t)];
        float* row = logits + t * head.rows;
        const float logit = row[token];
        const SoftmaxSums sums = ex_.kernels_.softmax(row, head.rows, factor);
        row[token] -= factor;
        losses[static_cast<size_t>(first + t)] =
            std::log(static_cast<double>(sums.sum)) + sums.largest - logit;
      }
    });
    if (!want_gradients) continue;
    add_dweight(head, rows, projection.y);
    const Activation part = ex_.allocate(n, x.cols());
    add_dx(head, projection.y, part, false);
    std::copy_n(data(part), n * x.cols(), data(dx) + first * x.cols());
  }
  return dx;
}

}  // namespace limpid
