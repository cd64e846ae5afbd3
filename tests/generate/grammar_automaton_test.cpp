#include "generate/grammar_automaton.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "limpid/error.hpp"

namespace limpid {
namespace {

std::string union_of_objects(int n) {
  std::string grammar = "root ::= \"{\\\"name\\\":\" (";
  for (int i = 0; i < n; ++i)
    grammar += fmt::format("{}string \",\\\"f{}\\\":\" [0-9]+", i == 0 ? "" : " | ", i);
  return grammar + ") \"}\"\nstring ::= \"\\\"\" [^\"\\\\]* \"\\\"\"";
}

// Texts of each grammar's letters, most of which leave it somewhere.
TEST(GrammarAutomaton, GoesWhereTheMatcherGoes) {
  std::mt19937 random(1);
  for (const std::string& text :
       {std::string("root ::= (\"a\" | \"ab\" | \"b\"{2,3})* \"c\"?"),
        std::string("root ::= \"(\" root? \")\" [a-c]*"),
        std::string("root ::= [^a]{1,4} | \"é\"+"), union_of_objects(3)}) {
    const Grammar grammar = parse_grammar(text);
    GrammarMatcher matcher(grammar);
    GrammarAutomaton automaton(grammar);
    constexpr std::string_view kLetters = "abc()\"{}:,name0\xC3\xA9";
    for (int round = 0; round < 300; ++round) {
      GrammarMatcher::State stacks = matcher.begin();
      GrammarAutomaton::State state = automaton.begin();
      for (int i = 0; i < 12; ++i) {
        matcher.allow(1000);
        automaton.allow(1000);
        const auto byte = static_cast<uint8_t>(kLetters[random() % kLetters.size()]);
        stacks = matcher.advance(stacks, byte);
        state = automaton.advance(state, byte);
        ASSERT_EQ(automaton.is_empty(state), stacks.empty()) << text;
        ASSERT_EQ(automaton.is_complete(state), GrammarMatcher::is_complete(stacks)) << text;
        if (round % 50 == 0) state = automaton.forget_all_but(state);
      }
    }
  }
}

// A hundred stacks, but a string has few states, however long it is.
TEST(GrammarAutomaton, TakesEachStepOnce) {
  const Grammar grammar = parse_grammar(union_of_objects(30));
  GrammarAutomaton automaton(grammar);
  GrammarAutomaton::State state = automaton.begin();
  automaton.allow(20'000);
  for (const char c : "{\"name\":\"" + std::string(100'000, 'x') + "é\",\"f29\":1}")
    state = automaton.advance(state, static_cast<uint8_t>(c));
  EXPECT_TRUE(automaton.is_complete(state));
  EXPECT_LT(automaton.size(), 100'000U);
}

// The classes of bytes are a, b and all others. After "a" the stacks are at "a", at "b" and at the
// end, and so they are after "aa".
TEST(GrammarAutomaton, CountsWhatItKeeps) {
  const Grammar grammar = parse_grammar("root ::= \"a\"* \"b\"?");
  GrammarAutomaton automaton(grammar);
  const GrammarAutomaton::State begin = automaton.begin();
  EXPECT_EQ(automaton.size(), 2U * 3 + 3);
  EXPECT_EQ(automaton.advance(automaton.advance(begin, 'a'), 'a'), begin);
  EXPECT_EQ(automaton.size(), 2U * 3 + 3);
  const GrammarAutomaton::State end = automaton.advance(begin, 'b');  // nothing may follow
  EXPECT_TRUE(automaton.is_empty(automaton.advance(end, 'b')));
  EXPECT_EQ(automaton.size(), (2U * 3 + 3) + (2 * 1 + 3) + 3);
  automaton.forget_all_but(end);
  EXPECT_EQ(automaton.size(), 2U * 1 + 3);
}

// Within each number of letters the stacks are others.
TEST(GrammarAutomaton, ForgetsTheStacksOfTheTextBefore) {
  const Grammar grammar = parse_grammar("root ::= \"(\" (root | [a-z]{1,2000}) \")\"");
  GrammarAutomaton automaton(grammar);
  GrammarAutomaton::State state = automaton.begin();
  automaton.allow(100'000);
  for (const char c : "((" + std::string(1000, 'x'))
    state = automaton.advance(state, static_cast<uint8_t>(c));
  EXPECT_GT(automaton.n_nodes(), 1000U);
  state = automaton.forget_all_but(state);
  EXPECT_LT(automaton.n_nodes(), 20U);
  for (const char c : std::string_view("x))")) {
    EXPECT_FALSE(automaton.is_complete(state));
    state = automaton.advance(state, static_cast<uint8_t>(c));
  }
  EXPECT_TRUE(automaton.is_complete(state));
}

TEST(GrammarAutomaton, StepsAreBounded) {
  const Grammar grammar = parse_grammar("root ::= \"a\"* \"a\"* \"a\"*");
  GrammarAutomaton automaton(grammar);
  const GrammarAutomaton::State begin = automaton.begin();
  automaton.allow(3);
  EXPECT_THROW(automaton.advance(begin, 'a'), ArgumentError);
}

}  // namespace
}  // namespace limpid
