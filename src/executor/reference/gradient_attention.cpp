// Backward of rope and of attention over whole sequences.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "executor/reference/reference_gradients.h"

namespace limpid {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::vector<float> factors_of(const Dropout& dropout, int64_t row, size_t n) {
  std::vector<float> factors(n, 1.0F);
  if (dropout) dropout_factors(dropout, row, 0, std::ssize(factors), factors.data());
  return factors;
}

}  // namespace

Activation ReferenceGradients::rope(const RopeTable& table, int64_t head_dim,
                                    const Activation& dy) {
  return ex_.rotate(dy, table, head_dim, -1);
}

int64_t ReferenceGradients::first_row(int64_t t) const {
  const StepInputs& inputs = ex_.inputs();
  const int64_t first = t - inputs.positions[t];
  LIMPID_CHECK(ShapeError, first >= 0 && inputs.sequences[first] == inputs.sequences[t],
               "[attention] row {} is position {}: the sequence is not whole in this step", t,
               inputs.positions[t]);
  return first;
}

std::vector<double> ReferenceGradients::probabilities(const Activation& q, const Activation& k,
                                                      const AttentionShape& shape, int64_t t,
                                                      int64_t head) const {
  const int64_t d = shape.head_dim;
  const int64_t kv = head / (shape.n_heads / shape.n_kv_heads) * d;
  std::vector<double> p;
  for (int64_t j = first_row(t); j <= t; ++j) {
    p.push_back(dot(ex_.rows(q)[t].subspan(head * d, d), ex_.rows(k)[j].subspan(kv, d)) *
                shape.scale);
  }
  const double largest = std::ranges::max(p);
  double total = 0;
  for (double& score : p) total += score = std::exp(score - largest);
  for (double& score : p) score /= total;
  return p;
}

Activation ReferenceGradients::attend_whole(const Activation& q, const Activation& k,
                                            const Activation& v, const AttentionShape& shape,
                                            const Dropout& dropout) {
  const int64_t d = shape.head_dim;
  Activation y = ex_.allocate(q.rows(), q.cols());
  for (int64_t t = 0; t < q.rows(); ++t) {
    for (int64_t h = 0; h < shape.n_heads; ++h) {
      const int64_t kv = h / (shape.n_heads / shape.n_kv_heads) * d;
      const std::vector<double> p = probabilities(q, k, shape, t, h);
      const std::vector<float> factors = factors_of(dropout, t * shape.n_heads + h, p.size());
      std::vector<double> sums(static_cast<size_t>(d), 0.0);
      for (size_t j = 0; j < p.size(); ++j) {
        for (int64_t i = 0; i < d; ++i)
          sums[i] += p[j] * factors[j] * ex_.rows(v)[first_row(t) + j][kv + i];
      }
      std::ranges::copy(sums, ex_.rows(y)[t].subspan(h * d, d).begin());
    }
  }
  return y;
}

AttentionGradients ReferenceGradients::attention(const Activation& q, const Activation& k,
                                                 const Activation& v, const Activation& y,
                                                 const AttentionShape& shape,
                                                 const Dropout& dropout, const Activation& dy) {
  const int64_t d = shape.head_dim;
  const int64_t group = shape.n_heads / shape.n_kv_heads;
  const auto n_q = static_cast<size_t>(q.rows() * q.cols());
  const auto n_k = static_cast<size_t>(k.rows() * k.cols());
  std::vector<double> dq(n_q, 0.0);
  std::vector<double> dk(n_k, 0.0);
  std::vector<double> dv(n_k, 0.0);
  for (int64_t t = 0; t < q.rows(); ++t) {
    const int64_t first = first_row(t);
    for (int64_t h = 0; h < shape.n_heads; ++h) {
      const int64_t kv = h / group * d;
      const auto q_t = ex_.rows(q)[t].subspan(h * d, d);
      const auto dy_t = ex_.rows(dy)[t].subspan(h * d, d);
      const std::vector<double> p = probabilities(q, k, shape, t, h);
      const std::vector<float> factors = factors_of(dropout, t * shape.n_heads + h, p.size());
      const double along_y = dot(dy_t, ex_.rows(y)[t].subspan(h * d, d));
      for (int64_t j = first; j <= t; ++j) {
        const double p_j = p[j - first];
        const double m_j = factors[j - first];
        const double dp = m_j * dot(dy_t, ex_.rows(v)[j].subspan(kv, d));
        const double ds = p_j * (dp - along_y) * shape.scale;
        for (int64_t i = 0; i < d; ++i) {
          dv[j * k.cols() + kv + i] += p_j * m_j * dy_t[i];
          dk[j * k.cols() + kv + i] += ds * q_t[i];
          dq[t * q.cols() + h * d + i] += ds * ex_.rows(k)[j][kv + i];
        }
      }
    }
  }
  AttentionGradients result{ex_.allocate(q.rows(), q.cols()), ex_.allocate(k.rows(), k.cols()),
                            ex_.allocate(k.rows(), k.cols())};
  std::ranges::copy(dq, ex_.rows(result.dq).data);
  std::ranges::copy(dk, ex_.rows(result.dk).data);
  std::ranges::copy(dv, ex_.rows(result.dv).data);
  return result;
}

}  // namespace limpid
