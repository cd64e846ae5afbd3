// The chain that turns logits into a token.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "limpid/sampler.hpp"

namespace limpid {

class SamplerChain {
 public:
  // `stop_ids` are what ignore_eos bans. Throws ArgumentError for options outside their range, an
  // unknown name in the order, ids outside the vocabulary.
  SamplerChain(const SamplerOptions& options, int64_t vocab_size,
               std::span<const TokenId> stop_ids);

  // logits [vocab_size]; `history` the whole sequence, prompt included. Throws ArgumentError for
  // NaN or infinite logits (naming the token) and when a sampler leaves no token.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history);

  uint64_t seed() const { return seed_; }
  // What was left at the last sample, with probabilities.
  const Candidates& candidates() const { return candidates_; }

 private:
  void check_bias(int64_t vocab_size) const;

  uint64_t seed_ = 0;
  bool greedy_ = false;
  std::vector<LogitBias> bias_;
  std::vector<std::shared_ptr<Sampler>> samplers_;
  Candidates candidates_;
};

}  // namespace limpid
