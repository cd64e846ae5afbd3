// Formal grammars that a text must follow, in GBNF, llama.cpp's notation:
//
//   root   ::= answer ("," " "? answer)*
//   answer ::= "yes" | "no" | [0-9]{1,3}     # a comment
//
// The grammar is kept in terms of bytes: a class of characters becomes rules for their UTF-8. So a
// token that ends within a character is not a special case.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace limpid {

struct Grammar {
  using ByteSet = std::bitset<256>;
  enum class Kind : uint8_t { kBytes, kRule, kEnd };
  // One place of an alternative: a byte of a set, another rule, or the alternative's end.
  struct Symbol {
    Kind kind = Kind::kEnd;
    uint32_t index = 0;  // into byte_sets or rules
  };

  std::vector<Symbol> symbols;  // the alternatives of all rules, each with its kEnd
  std::vector<ByteSet> byte_sets;
  std::vector<std::vector<uint32_t>> rules;  // where each alternative begins in `symbols`
  uint32_t root = 0;
};

// Throws ArgumentError for text that is not GBNF, a rule that is used but not defined, and a rule
// that can begin with itself: with the line and the rule. Also for a grammar without a rule `root`
// and for one that is too large.
Grammar parse_grammar(std::string_view text);

// Rules of which each can begin with the next one, and the last with the first; empty if there are
// none. parse_grammar refuses grammars that have some.
std::vector<uint32_t> left_recursion(const Grammar& grammar);

// Follows a text through a grammar, byte by byte. A grammar is a machine with a stack: inside the
// rule `answer` it remembers where `root` goes on. As several alternatives may fit so far, a state
// is a set of stacks. Stacks share their lower parts:
//
//   node 1: in root after `answer`     node 2: in answer, at "o" of "no", above node 1
//
// An example for `root ::= "ab"*`: the begin is {at "a", complete}, after "a" it is {at "b"}.
class GrammarMatcher {
 public:
  // A sorted set of nodes. It contains kComplete if the text may end here. It is empty if the text
  // does not fit the grammar.
  using State = std::vector<uint32_t>;
  static constexpr uint32_t kComplete = 0;

  // `grammar` must outlive the matcher.
  explicit GrammarMatcher(const Grammar& grammar);

  // Both throw ArgumentError when a grammar needs too many stacks, or more steps than are allowed.
  State begin();
  State advance(const State& state, uint8_t byte);
  // The calls until the next call of allow() may take this many steps together.
  void allow(uint64_t n_steps) { n_steps_left_ = n_steps; }
  // The nodes of all states so far.
  size_t n_nodes() const { return nodes_.size(); }
  // Forgets the nodes that `state` does not need, and gives it with their new numbers.
  State forget_all_but(const State& state);
  static bool is_complete(const State& state) {
    return !state.empty() && state.front() == kComplete;
  }

 private:
  // The top of a stack: the symbol that comes next, and the node below it (kComplete: none).
  struct Node {
    uint32_t symbol = 0;
    uint32_t below = 0;
  };

  void take_step();
  void expand(Node from, State& state);
  uint32_t id_of(Node node);

  const Grammar* grammar_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> seen_at_;  // the call that came to this node last
  std::unordered_map<uint64_t, uint32_t> known_;
  std::vector<Node> work_;
  uint32_t n_calls_ = 0;
  uint64_t n_steps_left_ = 1 << 20;
};

}  // namespace limpid
