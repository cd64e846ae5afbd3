#include "server/logprobs_json.h"

#include <cmath>

namespace limpid {

double finite_logprob(double logprob) { return std::isfinite(logprob) ? logprob : -9999; }

Json logprobs_to_json(std::span<const TokenLogprobs> logprobs, bool as_probabilities) {
  const auto tell = [&](const TokenLogprob& token) -> Json {
    return {{"token", token.piece},
            {"id", token.id},
            {as_probabilities ? "prob" : "logprob",
             as_probabilities ? std::exp(token.logprob) : finite_logprob(token.logprob)},
            {"bytes", std::vector<uint8_t>(token.piece.begin(), token.piece.end())}};
  };
  auto content = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json best = Json::array();
    for (const TokenLogprob& other : token.best) best.push_back(tell(other));
    Json entry = tell(token.chosen);
    entry[as_probabilities ? "top_probs" : "top_logprobs"] = std::move(best);
    content.push_back(std::move(entry));
  }
  return content;
}

}  // namespace limpid
