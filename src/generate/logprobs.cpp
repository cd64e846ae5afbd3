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

namespace {

TokenLogprob described(TokenId id, double logprob, const Tokenizer* tokenizer) {
  const bool has_piece = tokenizer != nullptr && id < tokenizer->vocab_size();
  return {id, std::string(has_piece ? tokenizer->bytes_of(id, true) : ""), logprob};
}

}  // namespace

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, int64_t n_best,
                             const Tokenizer* tokenizer) {
  const double normalizer = log_sum_exp(logits);
  const auto describe = [&](TokenId id) {
    return described(id, static_cast<double>(logits[static_cast<size_t>(id)]) - normalizer,
                     tokenizer);
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

TokenLogprobs candidate_logprobs(const Candidates& candidates, TokenId chosen, int64_t n_best,
                                 const Tokenizer* tokenizer) {
  std::vector<Candidate> items(candidates.items().begin(), candidates.items().end());
  const auto end = items.begin() + std::min<std::ptrdiff_t>(n_best, std::ssize(items));
  std::ranges::partial_sort(items, end, {},
                            [](const Candidate& c) { return std::pair(-c.probability, c.id); });
  const auto describe = [&](const Candidate& c) {
    return described(c.id, std::log(static_cast<double>(c.probability)), tokenizer);
  };
  TokenLogprobs result;
  result.chosen = describe(*std::ranges::find(items, chosen, &Candidate::id));
  for (auto item = items.begin(); item != end && item->probability > 0; ++item)
    result.best.push_back(describe(*item));
  return result;
}

}  // namespace limpid
