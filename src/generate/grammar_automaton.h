// Follows a text through a grammar as GrammarMatcher does, and remembers where each byte led.
//
// A sampler asks which of a hundred thousand tokens fit: a million bytes, for each of which the
// matcher follows all its stacks. The union of ten objects has a hundred stacks within a name, too
// many to follow a million times. But nearly all bytes lead from few states to few states: within a
// string of JSON, any letter leads back to the same state. So a state, a set of stacks, is a
// number here, and a step that was taken before is one look-up. Bytes that no set of the grammar
// distinguishes form one class, such as the letters in a string, and share their steps. (Automata
// that are made deterministic while they run: Thompson 1968, "Regular expression search
// algorithm".)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "generate/grammar.h"

namespace limpid {

class GrammarAutomaton {
 public:
  using State = uint32_t;

  // `grammar` must outlive the automaton.
  explicit GrammarAutomaton(const Grammar& grammar);

  // Both throw ArgumentError as GrammarMatcher's functions do, and for states that are too large.
  State begin() { return id_of(matcher_.begin()); }
  State advance(State state, uint8_t byte);
  // The calls until the next call of allow() may take this many steps of the matcher together.
  void allow(uint64_t n_steps) { matcher_.allow(n_steps); }

  bool is_empty(State state) const { return states_[state].empty(); }  // the text does not fit
  bool is_complete(State state) const { return GrammarMatcher::is_complete(states_[state]); }

  // The numbers that the states take: two for each stack, and one for each class of bytes.
  size_t size() const { return size_; }
  size_t n_nodes() const { return matcher_.n_nodes(); }
  // Forgets all states, steps and other nodes, and gives the new number of `kept`.
  State forget_all_but(State kept);

 private:
  State id_of(GrammarMatcher::State stacks);

  GrammarMatcher matcher_;
  std::array<uint8_t, 256> class_of_{};  // of a byte
  size_t n_classes_ = 0;
  size_t size_ = 0;
  std::vector<GrammarMatcher::State> states_;
  std::vector<std::vector<State>> next_;  // [state][class], kUnknown before the first step
  std::map<GrammarMatcher::State, State> known_;
};

}  // namespace limpid
