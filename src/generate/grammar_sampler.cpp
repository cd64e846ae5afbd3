#include "generate/grammar_sampler.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "generate/grammar_automaton.h"

namespace limpid {
namespace {

constexpr size_t kMostKnown = 256;  // of 128,256 tokens: 4 MB
// What is larger is forgotten before the next token.
constexpr size_t kLargeAutomaton = 1 << 21;  // 8 MB
constexpr size_t kManyNodes = 1 << 18;       // 13 MB
// The steps of the matcher that one pass over the vocabulary, or one token, may take
// (GrammarAutomaton::allow). More is an error: some grammars would take forever, because a state
// may have 100,000 stacks, and each of the vocabulary's million bytes may lead to another state.
constexpr uint64_t kMostSteps = 1 << 25;

size_t common_length(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// The data that all sequences of a request share.
struct GrammarRules {
  Grammar grammar;
  const Tokenizer& tokenizer;
  std::vector<TokenId> by_bytes;  // tokens that are text, sorted by their bytes
};

// The tokens that fit a state are computed once, in one pass over the sorted vocabulary, in which
// tokens with a common beginning share the steps for it. Texts often return to the same state
// (within a string of JSON, any letter leads to the same one), so most tokens of a text cost one
// look-up in a table.
class GrammarSampler final : public Sampler {
 public:
  explicit GrammarSampler(std::shared_ptr<const GrammarRules> rules)
      : rules_(std::move(rules)), automaton_(rules_->grammar), state_(automaton_.begin()) {}

  std::string_view name() const override { return kGrammarSampler; }
  std::shared_ptr<Sampler> clone() const override {
    return std::make_shared<GrammarSampler>(rules_);
  }

  void accept(TokenId token) override {
    if (token >= rules_->tokenizer.vocab_size() || rules_->tokenizer.is_stop(token)) return;
    automaton_.allow(kMostSteps);
    for (const char c : rules_->tokenizer.bytes_of(token))
      state_ = automaton_.advance(state_, static_cast<uint8_t>(c));
    if (automaton_.size() > kLargeAutomaton || automaton_.n_nodes() > kManyNodes) {
      state_ = automaton_.forget_all_but(state_);
      known_.clear();
    }
  }

  void apply(Candidates& candidates, const SamplerContext& /*context*/) override {
    const std::vector<bool>& fits = fitting();
    candidates.remove_if([&](const Candidate& c) {
      return static_cast<size_t>(c.id) >= fits.size() || !fits[static_cast<size_t>(c.id)];
    });
    LIMPID_CHECK(ArgumentError, candidates.size() > 0,
                 "[grammar] no token of this model continues the text as the grammar asks");
  }

 private:
  const std::vector<bool>& fitting() {
    const auto found = known_.find(state_);
    if (found != known_.end()) return found->second;
    if (known_.size() == kMostKnown) known_.clear();
    return known_.emplace(state_, compute_fitting()).first->second;
  }

  // states[n] is the state after n bytes of the token before. In sorted order a token often begins
  // like that one, so it goes on from the state after their common beginning. The loop stops at an
  // empty state, after which nothing fits; it stays at the back, so further tokens that begin with
  // the same bytes are refused at no cost.
  std::vector<bool> compute_fitting() {
    const Tokenizer& tokenizer = rules_->tokenizer;
    std::vector<bool> fits(static_cast<size_t>(tokenizer.vocab_size()), false);
    std::vector<GrammarAutomaton::State> states{state_};
    std::string_view before;
    automaton_.allow(kMostSteps);
    for (const TokenId id : rules_->by_bytes) {
      const std::string_view bytes = tokenizer.bytes_of(id);
      states.resize(std::min(states.size(), common_length(before, bytes) + 1));
      while (states.size() <= bytes.size() && !automaton_.is_empty(states.back()))
        states.push_back(
            automaton_.advance(states.back(), static_cast<uint8_t>(bytes[states.size() - 1])));
      fits[static_cast<size_t>(id)] = !automaton_.is_empty(states.back());
      before = bytes;
    }
    if (automaton_.is_complete(state_)) {
      for (const TokenId id : tokenizer.spec().stop_ids) fits[static_cast<size_t>(id)] = true;
    }
    return fits;
  }

  std::shared_ptr<const GrammarRules> rules_;
  GrammarAutomaton automaton_;
  GrammarAutomaton::State state_;
  // Of a state: token id -> whether it fits.
  std::unordered_map<GrammarAutomaton::State, std::vector<bool>> known_;
};

}  // namespace

std::shared_ptr<Sampler> make_grammar_sampler(std::string_view grammar,
                                              const Tokenizer& tokenizer) {
  Grammar parsed = parse_grammar(grammar);
  std::vector<TokenId> by_bytes;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_stop(id) && !tokenizer.bytes_of(id).empty()) by_bytes.push_back(id);
  }
  std::ranges::sort(by_bytes, {}, [&](TokenId id) { return tokenizer.bytes_of(id); });
  return std::make_shared<GrammarSampler>(std::make_shared<GrammarRules>(
      GrammarRules{std::move(parsed), tokenizer, std::move(by_bytes)}));
}

}  // namespace limpid
