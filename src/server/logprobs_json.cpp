#include "server/logprobs_json.h"

#include <cmath>

namespace limpid {

double finite_logprob(double logprob) { return std::isfinite(logprob) ? logprob : kLeastLogprob; }

Json token_to_json(const TokenLogprob& token) {
  return {{"token", token.piece},
          {"id", token.id},
          {"logprob", finite_logprob(token.logprob)},
          {"bytes", std::vector<uint8_t>(token.piece.begin(), token.piece.end())}};
}

namespace {

Json probability_to_json(const TokenLogprob& token) {
  return {{"token", token.piece},
          {"id", token.id},
          {"prob", std::exp(token.logprob)},
          {"bytes", std::vector<uint8_t>(token.piece.begin(), token.piece.end())}};
}

// `tell` makes the object of one token, `best` is the name of the list of the others.
template <typename Tell>
Json listed(std::span<const TokenLogprobs> logprobs, const char* best, Tell tell) {
  auto content = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json entry = tell(token.chosen);
    entry[best] = Json::array();
    for (const TokenLogprob& other : token.best) entry[best].push_back(tell(other));
    content.push_back(std::move(entry));
  }
  return content;
}

}  // namespace

Json logprobs_to_json(std::span<const TokenLogprobs> logprobs) {
  return listed(logprobs, "top_logprobs", token_to_json);
}

Json probabilities_to_json(std::span<const TokenLogprobs> logprobs) {
  return listed(logprobs, "top_probs", probability_to_json);
}

}  // namespace limpid
