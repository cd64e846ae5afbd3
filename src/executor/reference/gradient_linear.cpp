// Backward of `linear`, and the output head with its loss.
#include <cmath>

#include "base/check.h"
#include "executor/reference/reference_gradients.h"

namespace limpid {
namespace {

// dx [cols] += sum_r dy[r] W[r].
void add_dx(std::span<const float> dy, const std::vector<float>& w, std::vector<double>& dx) {
  for (size_t r = 0; r < dy.size(); ++r) {
    for (size_t i = 0; i < dx.size(); ++i)
      dx[i] += static_cast<double>(dy[r]) * w[r * dx.size() + i];
  }
}

}  // namespace

void ReferenceGradients::project(const Activation& x, std::span<Projection> projections) {
  ex_.linear(x, projections);
}

Activation ReferenceGradients::linear(const Activation& x,
                                      std::span<const ProjectionGradient> projections,
                                      bool want_dx) {
  for (const ProjectionGradient& p : projections) {
    Sums dweight(*this, p.weight);
    Sums dbias(*this, p.bias);
    for (int64_t t = 0; t < p.dy->rows(); ++t) {
      const std::span<const float> dy = ex_.rows(*p.dy)[t];
      for (int64_t r = 0; r < p.weight.rows; ++r) {
        if (dbias) dbias.row(0)[r] += dy[r];
        if (!dweight) continue;
        for (int64_t i = 0; i < x.cols(); ++i)
          dweight.row(r)[i] += static_cast<double>(dy[r]) * ex_.rows(x)[t][i];
      }
    }
  }
  if (!want_dx) return {};
  Activation dx = ex_.allocate(projections[0].dy->rows(), projections[0].weight.cols);
  std::vector<std::vector<float>> weights;
  for (const ProjectionGradient& p : projections) weights.push_back(matrix(p.weight));
  for (int64_t t = 0; t < dx.rows(); ++t) {
    std::vector<double> sums(static_cast<size_t>(dx.cols()), 0.0);
    for (size_t p = 0; p < projections.size(); ++p)
      add_dx(ex_.rows(*projections[p].dy)[t], weights[p], sums);
    std::ranges::copy(sums, ex_.rows(dx)[t].begin());
  }
  return dx;
}

Activation ReferenceGradients::cross_entropy(const Activation& x, const Weight& head,
                                             std::span<const LossTarget> targets,
                                             std::span<double> losses, bool want_gradients) {
  LIMPID_CHECK(ShapeError, std::ssize(targets) == x.rows() && losses.size() == targets.size(),
               "[cross_entropy] {} targets and {} losses for {} rows", targets.size(),
               losses.size(), x.rows());
  const std::vector<float> w = matrix(head);
  Activation z = ex_.allocate(1, head.rows);  // of one row, then its gradient
  Activation dx = want_gradients ? ex_.allocate(x.rows(), x.cols()) : Activation{};
  Sums dweight(*this, want_gradients ? head : Weight{});
  for (int64_t t = 0; t < x.rows(); ++t) {
    const std::span<const float> in = ex_.rows(x)[t];
    const std::span<float> logits = ex_.rows(z)[0];
    double largest = -INFINITY;
    for (int64_t v = 0; v < head.rows; ++v) {
      double sum = 0;
      for (size_t i = 0; i < in.size(); ++i)
        sum += static_cast<double>(in[i]) * w[v * in.size() + i];
      logits[v] = static_cast<float>(sum);
      largest = std::max(largest, static_cast<double>(logits[v]));
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(logit - largest);
    const auto [token, factor] = targets[t];
    losses[t] = std::log(total) + largest - logits[token];
    if (!want_gradients) continue;
    std::vector<double> sums(in.size(), 0.0);
    for (int64_t v = 0; v < head.rows; ++v) {
      const double p = std::exp(logits[v] - largest) / total;
      logits[v] = static_cast<float>((p - (v == token ? 1.0 : 0.0)) * factor);
      if (!dweight) continue;
      for (size_t i = 0; i < in.size(); ++i)
        dweight.row(v)[i] += static_cast<double>(logits[v]) * in[i];
    }
    add_dx(logits, w, sums);
    std::ranges::copy(sums, ex_.rows(dx)[t].begin());
  }
  return dx;
}

}  // namespace limpid
