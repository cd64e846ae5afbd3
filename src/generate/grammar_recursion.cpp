#include "generate/grammar.h"

namespace limpid {
namespace {

// Whether each rule can match nothing. An alternative can when each of its symbols is a rule that
// can; so rules that are found decide about others.
std::vector<bool> nullable_rules(const Grammar& grammar) {
  struct Alternative {
    uint32_t rule = 0;
    size_t n_missing = 0;  // symbols that are not known to match nothing
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<uint32_t>> places(grammar.rules.size());  // of a rule, in alternatives
  std::vector<bool> nullable(grammar.rules.size(), false);
  std::vector<uint32_t> found;
  const auto add = [&](uint32_t rule) {
    if (!nullable[rule]) found.push_back(rule);
    nullable[rule] = true;
  };
  for (uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (uint32_t at : grammar.rules[rule]) {
      Alternative alternative{rule};
      for (; grammar.symbols[at].kind != Grammar::Kind::kEnd; ++at, ++alternative.n_missing) {
        if (grammar.symbols[at].kind == Grammar::Kind::kRule)
          places[grammar.symbols[at].index].push_back(static_cast<uint32_t>(alternatives.size()));
      }
      if (alternative.n_missing == 0) add(rule);
      alternatives.push_back(alternative);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const uint32_t place : places[found[i]]) {
      if (--alternatives[place].n_missing == 0) add(alternatives[place].rule);
    }
  }
  return nullable;
}

// Whether the symbol at `at` is `rest` in a rule of the form rest ::= x rest | nothing, which
// repeats x. Where x is nothing, the rule begins with itself. But it is the last of its
// alternative, so the matcher's stack stays as it is, and the matcher follows each stack only once.
bool is_rest_of_repetition(const Grammar& grammar, uint32_t rule, uint32_t at) {
  const std::vector<uint32_t>& alternatives = grammar.rules[rule];
  const auto ends = [&](uint32_t place) {
    return grammar.symbols[place].kind == Grammar::Kind::kEnd;
  };
  return grammar.symbols[at].index == rule && ends(at + 1) && alternatives.size() == 2 &&
         at != alternatives.front() && ends(alternatives.back());
}

}  // namespace

// A rule that can begin with itself would be entered without end, without reading a byte. Rules are
// removed that begin with removed rules only; what remains is on a circle or leads to one. So going
// from each remaining rule to one that it can begin with ends on a circle.
std::vector<uint32_t> left_recursion(const Grammar& grammar) {
  const std::vector<bool> nullable = nullable_rules(grammar);
  const size_t n = grammar.rules.size();
  std::vector<std::vector<uint32_t>> users(n);  // rules that can begin with this one
  std::vector<size_t> n_begins(n, 0);
  for (uint32_t rule = 0; rule < n; ++rule) {
    for (uint32_t at : grammar.rules[rule]) {
      for (; grammar.symbols[at].kind == Grammar::Kind::kRule; ++at) {
        if (is_rest_of_repetition(grammar, rule, at)) continue;
        users[grammar.symbols[at].index].push_back(rule);
        ++n_begins[rule];
        if (!nullable[grammar.symbols[at].index]) break;
      }
    }
  }
  std::vector<uint32_t> free;
  for (uint32_t rule = 0; rule < n; ++rule) {
    if (n_begins[rule] == 0) free.push_back(rule);
  }
  for (size_t i = 0; i < free.size(); ++i) {
    for (const uint32_t user : users[free[i]]) {
      if (--n_begins[user] == 0) free.push_back(user);
    }
  }
  if (free.size() == n) return {};
  std::vector<uint32_t> next(n, 0);
  uint32_t at = 0;
  for (uint32_t rule = 0; rule < n; ++rule) {
    if (n_begins[rule] > 0) at = rule;
    for (const uint32_t user : users[rule]) {
      if (n_begins[rule] > 0) next[user] = rule;
    }
  }
  for (size_t i = 0; i < n; ++i) at = next[at];
  std::vector<uint32_t> circle{at};
  while (next[circle.back()] != at) circle.push_back(next[circle.back()]);
  return circle;
}

}  // namespace limpid
