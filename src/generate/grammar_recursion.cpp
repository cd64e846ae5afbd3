#include <algorithm>

#include "base/check.h"
#include "generate/grammar.h"

namespace limpid {
namespace {

// Whether each rule can match nothing: the least solution, found by repetition.
std::vector<bool> nullable_rules(const Grammar& grammar) {
  std::vector<bool> nullable(grammar.rules.size(), false);
  const auto matches_nothing = [&](uint32_t at) {
    for (; grammar.symbols[at].kind != Grammar::Kind::kEnd; ++at) {
      const Grammar::Symbol& symbol = grammar.symbols[at];
      if (symbol.kind == Grammar::Kind::kBytes || !nullable[symbol.index]) return false;
    }
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rule = 0; rule < grammar.rules.size(); ++rule) {
      if (nullable[rule] || std::ranges::none_of(grammar.rules[rule], matches_nothing)) continue;
      nullable[rule] = changed = true;
    }
  }
  return nullable;
}

}  // namespace

// A rule that can begin with itself would be entered for ever without a byte. Rules are removed
// that begin with removed rules only; what remains is on a circle or leads to one.
void refuse_left_recursion(const Grammar& grammar) {
  const std::vector<bool> nullable = nullable_rules(grammar);
  const size_t n = grammar.rules.size();
  std::vector<std::vector<uint32_t>> users(n);  // rules that can begin with this one
  std::vector<size_t> n_begins(n, 0);
  for (uint32_t rule = 0; rule < n; ++rule) {
    for (uint32_t at : grammar.rules[rule]) {
      for (; grammar.symbols[at].kind == Grammar::Kind::kRule; ++at) {
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
  LIMPID_CHECK(ArgumentError, free.size() == n,
               "[grammar] a rule can begin with itself, or repeats what can be nothing");
}

}  // namespace limpid
