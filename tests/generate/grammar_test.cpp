#include "generate/grammar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "generate/continuation.h"
#include "generate/grammar_sampler.h"
#include "generate/sampler_chain.h"
#include "generate/tiny_model.h"
#include "limpid/error.hpp"
#include "model/model.h"
#include "tokenizer/small_vocabulary.h"

namespace limpid {
namespace {

using testing::open_tiny;

enum class Fit : uint8_t { kNo, kBegun, kWhole };

Fit fit(std::string_view grammar, std::string_view text) {
  const Grammar parsed = parse_grammar(grammar);
  GrammarMatcher matcher(parsed);
  GrammarMatcher::State state = matcher.begin();
  for (const char c : text) {
    matcher.allow(1000);
    state = matcher.advance(state, static_cast<uint8_t>(c));
  }
  if (state.empty()) return Fit::kNo;
  return GrammarMatcher::is_complete(state) ? Fit::kWhole : Fit::kBegun;
}

std::string problem_of(const std::string& grammar) {
  try {
    parse_grammar(grammar);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Grammar, FollowsAlternativesAndRepeats) {
  const char* list = "root ::= item (\", \" item)* \".\"?   # a list\nitem ::= \"a\" | \"bc\"\n";
  for (const char* text : {"a", "bc", "a, bc", "a, a, a."}) EXPECT_EQ(fit(list, text), Fit::kWhole);
  for (const char* text : {"", "b", "a,", "a, b"}) EXPECT_EQ(fit(list, text), Fit::kBegun) << text;
  for (const char* text : {"c", "aa", "a..", "a, ."}) EXPECT_EQ(fit(list, text), Fit::kNo) << text;

  const auto fits = [](const char* grammar, size_t n) {
    return fit(grammar, std::string(n, 'x')) == Fit::kWhole;
  };
  struct Repeat {
    const char* grammar;
    size_t least, most;  // of the counts from 0 to 5
  };
  for (const Repeat& repeat :
       {Repeat{"root ::= \"x\"{2}", 2, 2}, Repeat{"root ::= \"x\"{2,}", 2, 5},
        Repeat{"root ::= \"x\"{0,3}", 0, 3}, Repeat{"root ::= \"x\"+", 1, 5},
        Repeat{"root ::= [x]{1,4}", 1, 4}}) {
    for (size_t n = 0; n <= 5; ++n) {
      EXPECT_EQ(fits(repeat.grammar, n), n >= repeat.least && n <= repeat.most)
          << repeat.grammar << " " << n;
    }
  }
}

TEST(Grammar, RepetitionsMayStandApartAndBeRepeated) {
  struct Case {
    const char* grammar;
    std::vector<const char*> good, bad;
  };
  for (const Case& c : {
           Case{"root ::= [0-9] +", {"1", "123"}, {"", "a"}},
           Case{"root ::= (\"a\" | \"b\") * \"c\"", {"c", "abac"}, {"", "ca"}},
           Case{"root ::= \"a\" {2} # twice\n", {"aa"}, {"a", "aaa"}},
           Case{"root ::= ( \"a\" \"b\" ) ?", {"", "ab"}, {"a", "abab"}},
           Case{"root ::= (\"a\"\n  + \"b\")", {"ab", "aab"}, {"b"}},
           Case{"root ::= \"a\"?? \"b\"", {"b", "ab"}, {"aab"}},
           Case{"root ::= \"a\"+* \"b\"", {"b", "aab"}, {"a"}},
           Case{"root ::= \"a\"{2} {2}", {"aaaa"}, {"aa", "aaaaa"}},
           Case{"root ::= \"ab\"{2}?", {"", "abab"}, {"ab"}},
           Case{"root ::= \"\"* \"b\"", {"b"}, {"", "bb"}},
       }) {
    for (const char* text : c.good) EXPECT_EQ(fit(c.grammar, text), Fit::kWhole) << c.grammar;
    for (const char* text : c.bad) EXPECT_NE(fit(c.grammar, text), Fit::kWhole) << c.grammar;
  }
  EXPECT_NE(problem_of("root ::= \"a\"\n+"), "");
  EXPECT_NE(problem_of("root ::= \"a\"{2000}{2000}"), "");
}

// What is repeated may be nothing. Every text of up to six letters is tried.
TEST(Grammar, RepeatsWhatMayBeNothing) {
  struct Case {
    const char* grammar;
    const char* pattern;
  };
  for (const Case& c : {
           Case{"root ::= (\"a\"?)*", "a*"},
           Case{"root ::= (\"a\"*)*", "a*"},
           Case{"root ::= ((\"a\"*)+)* \"b\"", "a*b"},
           Case{"root ::= (\"a\"?)+ \"b\"", "a*b"},
           Case{"root ::= (\"a\"?){2,}", "a*"},
           Case{"root ::= (\"a\"?){1,2}", "a?a?"},
           Case{"root ::= (ws \"a\"? ws)*\nws ::= [b]*", "[ab]*"},
           Case{"root ::= (x* y*)* \"c\"\nx ::= \"a\"?\ny ::= x \"b\"?", "[ab]*c"},
       }) {
    const std::regex pattern(c.pattern);
    for (int code = 0; code < 4096; ++code) {
      std::string text;
      for (int rest = code; rest > 0; rest /= 4) {
        if (rest % 4 > 0) text += "abc"[rest % 4 - 1];
      }
      const bool fits = fit(c.grammar, text) == Fit::kWhole;
      ASSERT_EQ(fits, std::regex_match(text, pattern)) << c.grammar << " " << text;
    }
  }
  EXPECT_EQ(fit("root ::= \"c\" (\"a\"? | root \"b\")*", "caacacbba"), Fit::kWhole);
  EXPECT_EQ(fit("root ::= (\"a\"?)*", std::string(100'000, 'a')), Fit::kWhole);
}

TEST(Grammar, NestsWithoutEnd) {
  const char* brackets = "root ::= \"(\" root? \")\"";
  EXPECT_EQ(fit(brackets, "((()))"), Fit::kWhole);
  EXPECT_EQ(fit(brackets, "((())"), Fit::kBegun);
  EXPECT_EQ(fit(brackets, "(()))"), Fit::kNo);
  const std::string deep = std::string(5000, '(') + std::string(5000, ')');
  EXPECT_EQ(fit(brackets, deep), Fit::kWhole);
  EXPECT_EQ(fit("root ::= \"a\"*", std::string(100'000, 'a')), Fit::kWhole);
}

TEST(Grammar, ClassesAreOfCharacters) {
  const char* class_of_some = "root ::= [a-cé-ÿ€\\u4E00-\\u9FFF\\U0001F600-\\U0001F64F]";
  for (const char* text : {"a", "c", "é", "ÿ", "€", "一", "鿿", "😀", "🙏"})
    EXPECT_EQ(fit(class_of_some, text), Fit::kWhole) << text;
  for (const char* text : {"d", "è", "₭", "🚀", "\x80", "\xC3\xC3"})
    EXPECT_EQ(fit(class_of_some, text), Fit::kNo) << text;
  EXPECT_EQ(fit(class_of_some, "\xE4\xB8"), Fit::kBegun);  // within a character
  const char* others = "root ::= [^a-z\\]\\n\"]";
  for (const char* text : {"A", "é", "😀", "[", "\t"})
    EXPECT_EQ(fit(others, text), Fit::kWhole) << text;
  for (const char* text : {"a", "z", "]", "\n", "\"", "\xED\xA0\x80", "\xF5"})
    EXPECT_EQ(fit(others, text), Fit::kNo) << text;
  EXPECT_EQ(fit("root ::= . \"\\x41\\u00e9\"", "€Aé"), Fit::kWhole);
}

// Every character against a class, by its own definition.
TEST(Grammar, AClassAgreesWithItsDefinitionForEveryCharacter) {
  const Grammar grammar = parse_grammar("root ::= [\\u0070-\\u0903\\uD000-\\U00010401]");
  GrammarMatcher matcher(grammar);
  const GrammarMatcher::State begin = matcher.begin();
  for (uint32_t code = 1; code <= 0x10FFFF; code += code < 0x1100 ? 1 : 97) {
    std::string text;
    if (code < 0x80) {
      text = {static_cast<char>(code)};
    } else {
      const uint32_t n = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      text = {static_cast<char>((n == 1 ? 0xC0U : n == 2 ? 0xE0U : 0xF0U) | code >> 6U * n)};
      for (uint32_t i = n; i-- > 0;) text += static_cast<char>(0x80U | (code >> 6U * i & 0x3FU));
    }
    GrammarMatcher::State state = begin;
    matcher.allow(1000);
    for (const char c : text) state = matcher.advance(state, static_cast<uint8_t>(c));
    const bool is_in = (code >= 0x70 && code <= 0x903) || (code >= 0xD000 && code <= 0x10401);
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    ASSERT_EQ(GrammarMatcher::is_complete(state), is_in && !is_surrogate) << code;
  }
}

TEST(Grammar, SaysWhatIsWrong) {
  struct Wrong {
    const char* grammar;
    const char* says;
  };
  for (const Wrong& wrong : {
           Wrong{"", "the rule 'root' is missing"},
           Wrong{"a ::= \"b\"", "the rule 'root' is missing"},
           Wrong{"root ::= a\na ::= other", "line 2, rule 'a': unknown rule 'other'"},
           Wrong{"root ::= \"a\"\nroot ::= \"b\"", "line 2, rule 'root': there are two rules"},
           Wrong{"root ::= x\nx ::= \"a\n\n", "line 2, rule 'x': the '\"' is not closed"},
           Wrong{"root ::= [a\n", "line 1, rule 'root': the '[' is not closed"},
           Wrong{"root ::= [z-a]", "ends before it begins"},
           Wrong{"root ::= (\"a\"\n\n", "line 1, rule 'root': the '(' is not closed"},
           Wrong{"root ::= (x\nx ::= \"a\"", "line 1, rule 'root': the '(' is not closed"},
           Wrong{"root ::= (\"a\";)", "')' is expected"},
           Wrong{"root ::= \"a\")", "unexpected ')'"},
           Wrong{"root = \"a\"", "'::=' is expected"},
           Wrong{"root ::= \"\\q\"", "unknown escape '\\q'"},
           Wrong{"root ::= \"\\", "the '\"' is not closed"},
           Wrong{"root ::= \"\\x4", "hexadecimal"},
           Wrong{"root ::= \"\xC0\x80\"",
                 "line 1, rule 'root': the text is not UTF-8"},  // U+0000, overlong
           Wrong{"root ::= \"a\"{3,2}", "less than the first"},
           Wrong{"root ::= \"a\"{9999999999}", "repeats"},
           Wrong{"root ::= root \"a\" | \"b\"", "begin with itself"},
           Wrong{"root ::= a* root \"b\"\na ::= \"a\"", "begin with itself"},
           Wrong{"root ::= root", "begin with itself"},
           Wrong{"root ::= x\nx ::= (y)\ny ::= x | \"b\"", "line 2, rule 'x': the rule can begin"},
           Wrong{"root ::= root | \"\"", "begin with itself"},
           Wrong{"root ::= (root \"a\"?)*", "begin with itself"},
           Wrong{"root ::= (\"a\"? root)* \"b\"", "begin with itself"},
           Wrong{"root ::= a\na ::= \"b\"? root \"c\" | \"\"", "begin with itself"},
           Wrong{"root ::= \"\\uD800\"", "U+D800 is half of a character"},
           Wrong{"root ::= \"\\uDFFF\"", "U+DFFF is half of a character"},
           Wrong{"root ::= []", "empty"},
       }) {
    EXPECT_NE(problem_of(wrong.grammar).find(wrong.says), std::string::npos)
        << wrong.grammar << " -> " << problem_of(wrong.grammar);
  }
  EXPECT_NE(problem_of("root ::= " + std::string(1000, '(')), "");
  EXPECT_NE(problem_of("root ::= \"" + std::string(200, 'x') + "\"{2000}"), "");
  EXPECT_NE(problem_of(std::string(1 << 20, ' ')), "");
}

// Chains of rules that are reached in 2^10,000 ways, that nest deeply, or that become nothing one
// after the other from the last to the first.
TEST(Grammar, LongChainsOfRulesTakeLittle) {
  std::string doubled = "root ::= r0\n", nested = doubled, empty = doubled;
  constexpr int kN = 10'000;
  for (int i = 0; i < kN; ++i) {
    doubled += fmt::format("r{} ::= r{} | r{}\n", i, i + 1, i + 1);
    nested += fmt::format("r{} ::= r{} \"a\"?\n", i, i + 1);
    empty += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  }
  const std::string last = fmt::format("r{} ::= \"b\"", kN);
  for (const std::string& chain : {doubled, nested}) {
    const Grammar grammar = parse_grammar(chain + last);
    GrammarMatcher matcher(grammar);
    EXPECT_TRUE(GrammarMatcher::is_complete(matcher.advance(matcher.begin(), 'b')));
  }
  EXPECT_EQ(problem_of(empty + last + "?"), "");
}

TEST(Grammar, StepsAreBounded) {
  const Grammar grammar = parse_grammar("root ::= \"a\"* \"a\"* \"a\"*");
  GrammarMatcher matcher(grammar);
  GrammarMatcher::State state = matcher.begin();
  matcher.allow(100);
  const auto go_on = [&] { state = matcher.advance(state, 'a'); };
  EXPECT_NO_THROW(go_on());
  matcher.allow(3);
  EXPECT_THROW(go_on(), ArgumentError);
}

// The tokens are those whose bytes, one by one, the matcher takes.
TEST(GrammarSampler, LeavesTheTokensThatFit) {
  const auto model = open_tiny();
  const Tokenizer& tokenizer = *engine_of(model)->tokenizer();
  const auto sampler = make_grammar_sampler("root ::= (\"the\" | \"he\" [x-z])+", tokenizer);
  const auto left = [&](Sampler& by) {
    Candidates candidates;
    candidates.assign(std::vector<float>(static_cast<size_t>(testing::kTinyVocabulary), 0.0F));
    by.apply(candidates, {{}, 0});
    std::vector<std::string> pieces;
    for (const Candidate& c : candidates.items())
      pieces.emplace_back(tokenizer.bytes_of(c.id, true));
    std::ranges::sort(pieces);
    return pieces;
  };
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(left(*sampler), (Pieces{"h", "he", "t", "the"}));
  const auto other = sampler->clone();
  sampler->accept(testing::kHe);
  EXPECT_EQ(left(*sampler), (Pieces{"x", "y", "z"}));
  sampler->accept('y');
  EXPECT_EQ(left(*sampler), (Pieces{"<|endoftext|>", "<|im_end|>", "h", "he", "t", "the"}));
  EXPECT_EQ(left(*other), (Pieces{"h", "he", "t", "the"}));  // has a state of its own
}

// Each word has stacks of its own, because each has another number of words after it.
TEST(GrammarSampler, ALongTextDoesNotNest) {
  std::string grammar = "root ::= (word{1000} \",\"){1000}\nword ::= \"yz\"";
  for (int i = 0; i < 200; ++i) grammar += fmt::format(" | \"y{}\"", i);
  const auto model = open_tiny();
  const auto sampler = make_grammar_sampler(grammar, *engine_of(model)->tokenizer());
  const auto accept_words = [&] {
    for (int i = 1; i <= 4000; ++i) {
      for (const char c : std::string_view(i % 1000 == 0 ? "yz," : "yz")) sampler->accept(c);
    }
  };
  EXPECT_NO_THROW(accept_words());
  Candidates candidates;
  candidates.assign(std::vector<float>(static_cast<size_t>(testing::kTinyVocabulary), 0.0F));
  sampler->apply(candidates, {{}, 0});
  ASSERT_EQ(candidates.size(), 1);
  EXPECT_EQ(candidates.items()[0].id, 'y');
}

// Whoever bans the end gets it where the grammar leaves nothing else, and not before.
TEST(GrammarSampler, TheTextEndsWhereOnlyBannedEndsAreLeft) {
  const auto model = open_tiny();
  const Tokenizer& tokenizer = *engine_of(model)->tokenizer();
  const std::vector<TokenId> stops = {testing::kEndOfText, testing::kTurnEnd};
  const std::vector<float> logits(static_cast<size_t>(testing::kTinyVocabulary), 0.0F);
  for (const float temperature : {0.0F, 1.0F}) {
    SamplerOptions options;
    options.seed = 1;
    options.temperature = temperature;
    options.ignore_eos = true;
    options.custom = {make_grammar_sampler("root ::= \"x\" \"y\"?", tokenizer)};
    SamplerChain chain(options, testing::kTinyVocabulary, stops);
    EXPECT_EQ(chain.sample(logits, {}), 'x');
    EXPECT_EQ(chain.sample(logits, {}), 'y');
    EXPECT_TRUE(tokenizer.is_stop(chain.sample(logits, {})));
    options.logit_bias = {{'x', -std::numeric_limits<float>::infinity()}};
    SamplerChain stuck(options, testing::kTinyVocabulary, stops);
    EXPECT_THROW(stuck.sample(logits, {}), ArgumentError);
  }
}

// A tokenizer of SentencePiece puts a space before the text, which the answer lacks without a
// grammar.
TEST(GrammarSampler, TheAnswerHasTheSpaceOfTheGrammar) {
  const auto tokenizer = Tokenizer::create(small_vocabulary("spm"));
  testing::TinyShape shape;
  shape.vocab_size = tokenizer->vocab_size();
  const Engine engine(
      Model::load(testing::tiny_checkpoint(shape), make_executor("cpu", {.n_threads = 1})),
      tokenizer, OpenOptions(), MemoryPlan());
  std::vector<float> logits(static_cast<size_t>(shape.vocab_size), 0.0F);
  logits[static_cast<size_t>(tokenizer->find("\u2581the").value())] = 1;
  const std::vector<TokenId> prompt = {tokenizer->spec().bos.value()};
  const auto said = [&](std::vector<std::shared_ptr<Sampler>> custom) {
    GenerationOptions options;
    options.sampler.temperature = 0;
    options.sampler.custom = std::move(custom);
    Continuation continuation(engine, options);
    continuation.begin(prompt);
    continuation.next({logits, {}});
    return continuation.take_text();
  };
  EXPECT_EQ(said({}), "the");
  EXPECT_EQ(said({make_grammar_sampler("root ::= \" the\"", *tokenizer)}), " the");
}

}  // namespace
}  // namespace limpid
