#include "server/logprobs_json.h"

#include <cmath>

namespace limpid {

double finite_logprob(double logprob) { return std::isfinite(logprob) ? logprob : kLeastLogprob; }

namespace {

// `name` is the key of a token's number(logprob), `best` that of the list of the other tokens.
Json listed(std::span<const TokenLogprobs> logprobs, const char* name, const char* best,
            double (*number)(double logprob)) {
  const auto tell = [&](const TokenLogprob& token) -> Json {
    return {{"token", token.piece},
            {"id", token.id},
            {name, number(token.logprob)},
            {"bytes", std::vector<uint8_t>(token.piece.begin(), token.piece.end())}};
  };
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
  return listed(logprobs, "logprob", "top_logprobs", finite_logprob);
}

Json probabilities_to_json(std::span<const TokenLogprobs> logprobs) {
  return listed(logprobs, "prob", "top_probs", [](double logprob) { return std::exp(logprob); });
}

}  // namespace limpid
