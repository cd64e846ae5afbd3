// The chain of samplers that turns logits into a token.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "limpid/sampler.hpp"

namespace limpid {

// Creates the sampler of that name in SamplerOptions::order ("typical" and "temp" are accepted
// too). The samplers that come with Limpid have llama.cpp's semantics and names. Null when
// `options` switch it off. Throws ArgumentError, which lists the names, for an unknown one.
std::shared_ptr<Sampler> make_sampler(std::string_view name, const SamplerOptions& options);

// Bias, then each sampler in order, then softmax, then one random draw. With temperature 0 the
// chain is greedy: only bias, penalties and custom samplers run, and the best candidate is taken.
class SamplerChain {
 public:
  // `stop_ids` are the tokens that ignore_eos bans. Where a sampler, such as a grammar, leaves
  // nothing else, one of them ends the text all the same. Throws ArgumentError for options outside
  // their range, an unknown name in the order, and ids outside the vocabulary.
  SamplerChain(const SamplerOptions& options, int64_t vocab_size,
               std::span<const TokenId> stop_ids);

  // Chooses a token from logits [vocab_size]. `history` is the whole sequence, prompt included.
  // Tells the samplers which token was chosen. Throws ArgumentError for NaN or infinite logits
  // (naming the token) and when a sampler leaves no token.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history);

  // The same from the n_best() best logits, or more of them, best first.
  TokenId sample_best(std::span<const Candidate> best, std::span<const TokenId> history);
  // How many of the best logits decide the choice; 0: all of them do.
  int64_t n_best() const { return n_best_; }

  uint64_t seed() const { return seed_; }
  // The candidates that were left at the last sample, with probabilities.
  const Candidates& candidates() const { return candidates_; }

 private:
  void check_bias(int64_t vocab_size) const;
  int64_t n_deciding(const SamplerOptions& options) const;
  void add_bias();
  void allow_end();
  TokenId choose(std::span<const TokenId> history);
  double next_uniform(const SamplerContext& context);
  TokenId draw(double u) const;

  uint64_t seed_ = 0;
  std::optional<std::mt19937> twister_;  // with RandomNumbers::kMersenneTwister
  bool greedy_ = false;
  std::vector<LogitBias> bias_;
  std::vector<TokenId> stop_ids_;
  std::vector<std::shared_ptr<Sampler>> samplers_;
  int64_t n_best_ = 0;  // the samplers see only so many of the best; 0: all
  Candidates candidates_;
};

}  // namespace limpid
