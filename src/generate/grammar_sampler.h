// Leaves only tokens with which the text still follows a grammar.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "generate/grammar_automaton.h"
#include "limpid/sampler.hpp"
#include "tokenizer/tokenizer.h"

namespace limpid {

// The data that all sequences of a request share.
struct GrammarRules {
  Grammar grammar;
  const Tokenizer& tokenizer;
  std::vector<TokenId> by_bytes;  // tokens that are text, sorted by their bytes
};

// A sampler for SamplerOptions::custom. It runs before all others. The tokens that end the text
// remain only where the grammar allows the text to end. `tokenizer` must outlive the sampler.
// Throws ArgumentError for a malformed grammar.
std::shared_ptr<Sampler> make_grammar_sampler(std::string_view grammar, const Tokenizer& tokenizer);

// The tokens that fit a state are computed once, in one pass over the sorted vocabulary, in which
// tokens with a common beginning share the steps for it. Texts often return to the same state
// (within a string of JSON, any letter leads to the same one), so most tokens of a text cost one
// look-up in a table.
class GrammarSampler final : public Sampler {
 public:
  explicit GrammarSampler(std::shared_ptr<const GrammarRules> rules);

  std::string_view name() const override { return "grammar"; }
  std::shared_ptr<Sampler> clone() const override {
    return std::make_shared<GrammarSampler>(rules_);
  }
  void accept(TokenId token) override;
  void apply(Candidates& candidates, const SamplerContext& context) override;

 private:
  const std::vector<bool>& fitting();
  std::vector<bool> compute_fitting();

  std::shared_ptr<const GrammarRules> rules_;
  GrammarAutomaton automaton_;
  GrammarAutomaton::State state_;
  // Of a state: token id -> whether it fits.
  std::unordered_map<GrammarAutomaton::State, std::vector<bool>> known_;
};

}  // namespace limpid
