#include "insight/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "insight/row_kernels.h"

namespace limpid {

// With m the largest logit, e_i = e^(l_i - m) and Z = sum e_i, the entropy in nats is
//   - sum p_i log p_i = - sum (e_i / Z) (l_i - m - log Z) = log Z - sum e_i (l_i - m) / Z
// so one pass over the logits gives both sums.
Prediction predict(std::span<const float> logits, int64_t n_best) {
  const RowKernels& kernels = row_kernels();
  std::vector<float> maxima(static_cast<size_t>(block_count(std::ssize(logits))));
  kernels.block_maxima(logits.data(), std::ssize(logits), maxima.data());
  const float largest = *std::ranges::max_element(maxima);
  const auto [sum, weighted] = kernels.exponential_sums(logits.data(), std::ssize(logits), largest);
  const auto before = [](const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  const auto most = static_cast<size_t>(std::min<int64_t>(n_best, std::ssize(logits)));
  std::vector<std::pair<float, TokenId>> best;  // in the order of `before`
  const auto least = [&] {
    return best.size() < most ? -std::numeric_limits<float>::infinity() : best.back().first;
  };
  const auto take = [&](int64_t i) {
    if (best.size() == most) best.pop_back();
    const std::pair entry(logits[static_cast<size_t>(i)], static_cast<TokenId>(i));
    best.insert(std::ranges::upper_bound(best, entry, before), entry);
  };
  if (most > 0) for_candidates(logits, maxima, least, take);
  Prediction prediction;
  for (const auto& [logit, id] : best) {
    const double e = std::exp(static_cast<double>(logit) - static_cast<double>(largest));
    prediction.likeliest.push_back({id, static_cast<float>(e / sum)});
  }
  prediction.entropy = std::max(0.0, (std::log(sum) - weighted / sum) / std::numbers::ln2);
  prediction.log_sum_exp = static_cast<double>(largest) + std::log(sum);
  return prediction;
}

double surprise(double log_probability) { return -log_probability / std::numbers::ln2; }

}  // namespace limpid
