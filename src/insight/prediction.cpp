#include "insight/prediction.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limpid {

// With m the largest logit, e_i = e^(l_i - m) and Z = sum e_i, the entropy in nats is
//   - sum p_i log p_i = - sum (e_i / Z) (l_i - m - log Z) = log Z - sum e_i (l_i - m) / Z
// so one pass over the logits gives both sums.
Prediction predict(std::span<const float> logits, int64_t n_best) {
  const float largest = *std::ranges::max_element(logits);
  const auto before = [](const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  const auto most = static_cast<size_t>(std::min<int64_t>(n_best, std::ssize(logits)));
  std::vector<std::pair<float, TokenId>> best;  // in the order of `before`
  double sum = 0;
  double weighted = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float below = logits[i] - largest;
    const double e = std::exp(below);
    sum += e;
    weighted += e * static_cast<double>(below);
    if (most == 0 || (best.size() == most && logits[i] <= best.back().first)) continue;
    if (best.size() == most) best.pop_back();
    const std::pair entry(logits[i], static_cast<TokenId>(i));
    best.insert(std::ranges::upper_bound(best, entry, before), entry);
  }
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
