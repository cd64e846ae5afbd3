#include "generate/grammar.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

constexpr size_t kMostNodes = 1 << 20;

void make_set(GrammarMatcher::State& state) {
  std::ranges::sort(state);
  state.erase(std::unique(state.begin(), state.end()), state.end());
}

}  // namespace

GrammarMatcher::GrammarMatcher(const Grammar& grammar)
    : grammar_(&grammar), nodes_(1), seen_at_(1) {}

void GrammarMatcher::take_step() {
  LIMPID_CHECK(
      ArgumentError, n_steps_left_-- > 0,
      "[grammar] too many alternatives of the grammar fit the text so far: make it less ambiguous");
}

uint32_t GrammarMatcher::id_of(Node node) {
  const auto next = static_cast<uint32_t>(nodes_.size());
  const auto [entry, is_new] = known_.try_emplace(uint64_t{node.symbol} << 32U | node.below, next);
  if (is_new) {
    LIMPID_CHECK(ArgumentError, nodes_.size() < kMostNodes, "[grammar] the text nests too deeply");
    nodes_.push_back(node);
    seen_at_.push_back(0);
  }
  return entry->second;
}

// Adds all stacks whose next symbol is a byte and that are reached from `from` without reading a
// byte. A rule at the end of an alternative replaces the alternative on the stack, so that lists do
// not make the stack grow. A node that was already reached is not followed again: the number of
// ways to it can grow as 2 to the number of rules.
void GrammarMatcher::expand(Node from, State& state) {
  work_.assign(1, from);
  while (!work_.empty()) {
    take_step();
    const Node node = work_.back();
    work_.pop_back();
    const uint32_t id = id_of(node);
    if (std::exchange(seen_at_[id], n_calls_) == n_calls_) continue;
    const Grammar::Symbol& at = grammar_->symbols[node.symbol];
    if (at.kind == Grammar::Kind::kBytes) {
      state.push_back(id);
    } else if (at.kind == Grammar::Kind::kEnd) {
      if (node.below == kComplete) {
        state.push_back(kComplete);
      } else {
        work_.push_back(nodes_[node.below]);
      }
    } else {
      const bool is_last = grammar_->symbols[node.symbol + 1].kind == Grammar::Kind::kEnd;
      const uint32_t rest = is_last ? node.below : id_of({node.symbol + 1, node.below});
      for (const uint32_t alternative : grammar_->rules[at.index])
        work_.push_back({alternative, rest});
    }
  }
}

GrammarMatcher::State GrammarMatcher::begin() {
  ++n_calls_;
  State state;
  for (const uint32_t alternative : grammar_->rules[grammar_->root])
    expand({alternative, kComplete}, state);
  make_set(state);
  return state;
}

GrammarMatcher::State GrammarMatcher::advance(const State& state, uint8_t byte) {
  ++n_calls_;
  State next;
  for (const uint32_t id : state) {
    take_step();
    if (id == kComplete) continue;
    const Node node = nodes_[id];
    if (grammar_->byte_sets[grammar_->symbols[node.symbol].index].test(byte))
      expand({node.symbol + 1, node.below}, next);
  }
  make_set(next);
  return next;
}

// A node is made after the node below it, so the kept ones keep their order.
GrammarMatcher::State GrammarMatcher::forget_all_but(const State& state) {
  std::vector<bool> is_kept(nodes_.size(), false);
  for (uint32_t id : state) {
    for (; id != kComplete && !is_kept[id]; id = nodes_[id].below) is_kept[id] = true;
  }
  const std::vector<Node> old = std::exchange(nodes_, std::vector<Node>(1));
  seen_at_.assign(1, 0);
  known_.clear();
  std::vector<uint32_t> new_ids(old.size(), kComplete);
  for (size_t id = 1; id < old.size(); ++id) {
    if (is_kept[id]) new_ids[id] = id_of({old[id].symbol, new_ids[old[id].below]});
  }
  State kept;
  for (const uint32_t id : state) kept.push_back(new_ids[id]);
  return kept;
}

}  // namespace limpid
