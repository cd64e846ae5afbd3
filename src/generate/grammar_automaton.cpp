#include "generate/grammar_automaton.h"

#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

constexpr GrammarAutomaton::State kUnknown = UINT32_MAX;
// A count of the states would not bound their memory: a state may have 100,000 stacks.
constexpr size_t kMostSize = 1 << 25;  // 128 MB

}  // namespace

GrammarAutomaton::GrammarAutomaton(const Grammar& grammar) : matcher_(grammar) {
  std::map<std::vector<bool>, uint8_t> classes;  // by the sets that have the byte
  for (size_t byte = 0; byte < class_of_.size(); ++byte) {
    std::vector<bool> sets;
    for (const Grammar::ByteSet& set : grammar.byte_sets) sets.push_back(set.test(byte));
    class_of_[byte] = classes.emplace(std::move(sets), classes.size()).first->second;
  }
  n_classes_ = classes.size();
}

GrammarAutomaton::State GrammarAutomaton::id_of(GrammarMatcher::State stacks) {
  const auto next = static_cast<State>(states_.size());
  const auto [entry, is_new] = known_.try_emplace(std::move(stacks), next);
  if (is_new) {
    states_.push_back(entry->first);
    next_.emplace_back(n_classes_, kUnknown);
    size_ += 2 * entry->first.size() + n_classes_;
    LIMPID_CHECK(ArgumentError, size_ <= kMostSize,
                 "[grammar] too many alternatives of the grammar fit the text so far: make it less "
                 "ambiguous");
  }
  return entry->second;
}

GrammarAutomaton::State GrammarAutomaton::advance(State state, uint8_t byte) {
  const size_t byte_class = class_of_[byte];
  if (next_[state][byte_class] == kUnknown) {
    const State to = id_of(matcher_.advance(states_[state], byte));
    next_[state][byte_class] = to;
  }
  return next_[state][byte_class];
}

GrammarAutomaton::State GrammarAutomaton::forget_all_but(State kept) {
  GrammarMatcher::State stacks = matcher_.forget_all_but(states_[kept]);
  known_.clear();
  states_.clear();
  next_.clear();
  size_ = 0;
  return id_of(std::move(stacks));
}

}  // namespace limpid
