#include "insight/prediction.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "insight/row_kernels.h"

namespace limpid {

// With m the largest logit, e_i = e^(l_i - m) and Z = sum e_i, the entropy in nats is
//   - sum p_i log p_i = - sum (e_i / Z) (l_i - m - log Z) = log Z - sum e_i (l_i - m) / Z
// so one pass over the logits gives both sums.
Prediction predict(std::span<const float> logits, int64_t n_best) {
  std::vector<float> maxima(static_cast<size_t>(block_count(std::ssize(logits))));
  const auto [largest, sum, weighted] =
      row_kernels().exponential_sums(logits.data(), std::ssize(logits), maxima.data());
  Prediction prediction;
  for (const auto& [logit, id] : largest_numbers(logits, maxima, n_best)) {
    const double e = std::exp(static_cast<double>(logit) - static_cast<double>(largest));
    prediction.likeliest.push_back({static_cast<TokenId>(id), static_cast<float>(e / sum)});
  }
  prediction.entropy = std::max(0.0, (std::log(sum) - weighted / sum) / std::numbers::ln2);
  prediction.log_sum_exp = static_cast<double>(largest) + std::log(sum);
  return prediction;
}

double surprise(double log_probability) { return -log_probability / std::numbers::ln2; }

}  // namespace limpid
