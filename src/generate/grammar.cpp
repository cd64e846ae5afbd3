#include "generate/grammar.h"

#include <algorithm>

#include "base/check.h"

namespace limpid {
namespace {

constexpr size_t kMostStacks = 1 << 14;
constexpr size_t kMostNodes = 1 << 20;

void make_set(GrammarMatcher::State& state) {
  std::ranges::sort(state);
  state.erase(std::unique(state.begin(), state.end()), state.end());
}

}  // namespace

GrammarMatcher::GrammarMatcher(const Grammar& grammar) : grammar_(&grammar), nodes_(1) {}

uint32_t GrammarMatcher::node_of(uint32_t symbol, uint32_t below) {
  const auto next = static_cast<uint32_t>(nodes_.size());
  const auto [entry, is_new] = known_.try_emplace(uint64_t{symbol} << 32U | below, next);
  if (is_new) {
    LIMPID_CHECK(ArgumentError, nodes_.size() < kMostNodes, "[grammar] the text nests too deeply");
    nodes_.push_back({symbol, below});
  }
  return entry->second;
}

// Adds the stacks that stand before a byte and follow from standing at `symbol`. A rule at the end
// of an alternative takes the alternative's place, so that lists do not make the stack grow.
void GrammarMatcher::expand(uint32_t symbol, uint32_t below, State& state) {
  const Grammar::Symbol& at = grammar_->symbols[symbol];
  if (at.kind == Grammar::Kind::kEnd) {
    if (below == kComplete) {
      state.push_back(kComplete);
    } else {
      expand(nodes_[below].symbol, nodes_[below].below, state);
    }
    return;
  }
  if (at.kind == Grammar::Kind::kBytes) {
    LIMPID_CHECK(ArgumentError, state.size() < kMostStacks,
                 "[grammar] the grammar is too ambiguous for this text");
    state.push_back(node_of(symbol, below));
    return;
  }
  const bool is_last = grammar_->symbols[symbol + 1].kind == Grammar::Kind::kEnd;
  const uint32_t rest = is_last ? below : node_of(symbol + 1, below);
  for (const uint32_t alternative : grammar_->rules[at.index]) expand(alternative, rest, state);
}

GrammarMatcher::State GrammarMatcher::begin() {
  State state;
  for (const uint32_t alternative : grammar_->rules[grammar_->root])
    expand(alternative, kComplete, state);
  make_set(state);
  return state;
}

GrammarMatcher::State GrammarMatcher::advance(const State& state, uint8_t byte) {
  State next;
  for (const uint32_t id : state) {
    if (id == kComplete) continue;
    const Node node = nodes_[id];
    if (grammar_->byte_sets[grammar_->symbols[node.symbol].index].test(byte))
      expand(node.symbol + 1, node.below, next);
  }
  make_set(next);
  return next;
}

}  // namespace limpid
