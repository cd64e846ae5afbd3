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

Json logprobs_to_json(std::span<const TokenLogprobs> logprobs) {
  auto content = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json entry = token_to_json(token.chosen);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.best)
      entry["top_logprobs"].push_back(token_to_json(other));
    content.push_back(std::move(entry));
  }
  return content;
}

}  // namespace limpid
