#include "generate/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "generate/portable_exp.h"

namespace limpid {

// The largest logit is factored out so that no exponential overflows: log sum e^x = max + log sum
// e^(x - max).
double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += portable_exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, int64_t n_best,
                             const Tokenizer* tokenizer) {
  const double normalizer = log_sum_exp(logits);
  const auto describe = [&](TokenId id) {
    TokenLogprob described;
    described.id = id;
    if (tokenizer != nullptr && id < tokenizer->vocab_size())
      described.piece = tokenizer->bytes_of(id, true);
    described.logprob = static_cast<double>(logits[static_cast<size_t>(id)]) - normalizer;
    return described;
  };
  TokenLogprobs result;
  result.chosen = describe(chosen);
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(n_best, std::ssize(ids));
  std::ranges::partial_sort(
      ids, end, {}, [&](TokenId id) { return std::pair(-logits[static_cast<size_t>(id)], id); });
  for (auto id = ids.begin(); id != end; ++id) result.best.push_back(describe(*id));
  return result;
}

}  // namespace limpid
