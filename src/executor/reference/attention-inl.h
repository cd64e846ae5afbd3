// Softmax attention of one query over its keys (Vaswani et al. 2017, eq. 1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace limpid::reference {

// Declared, with its shapes, in ops.h.
template <typename Key, typename Value>
void attend(std::span<const float> q, int64_t n, float scale, Key&& key, Value&& value,
            std::span<double> scores, std::span<double> sums, std::span<float> out) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    const std::span<const float> k = key(j);
    double dot = 0;
    for (size_t d = 0; d < q.size(); ++d) dot += static_cast<double>(q[d]) * k[d];
    scores[j] = dot * scale;
    largest = std::max(largest, scores[j]);
  }
  double total = 0;
  std::ranges::fill(sums, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const double p = std::exp(scores[j] - largest);
    const std::span<const float> v = value(j);
    total += p;
    for (size_t d = 0; d < out.size(); ++d) sums[d] += p * v[d];
  }
  for (size_t d = 0; d < out.size(); ++d) out[d] = static_cast<float>(sums[d] / total);
}

}  // namespace limpid::reference
