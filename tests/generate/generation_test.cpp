#include "limpid/generation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "generate/tiny_model.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {
namespace {

using testing::open_tiny;
using testing::saying;

GenerationOptions greedy(int64_t n_predict) {
  GenerationOptions options;
  options.n_predict = n_predict;
  options.sampler.temperature = 0;
  return options;
}

class GenerationTest : public ::testing::TestWithParam<const char*> {
 protected:
  LanguageModel model_ = open_tiny({.device = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(Executors, GenerationTest, ::testing::Values("reference", "cpu"));

TEST_P(GenerationTest, GreedyTakesTheBestTokenOfEachStep) {
  Session session(model_);
  const auto options = [] {
    auto o = greedy(12);
    o.sampler.ignore_eos = true;
    return o;
  }();
  const GenerationResult result = session.generate("the heim", options).result();
  ASSERT_EQ(result.ids.size(), 12U);
  EXPECT_EQ(result.stop_reason, StopReason::kLength);

  Session by_hand(model_);
  by_hand.append(model_.encode("the heim"));
  for (const TokenId id : result.ids) {
    auto logits = std::vector<float>(by_hand.logits().begin(), by_hand.logits().end());
    logits[testing::kTurnEnd] = logits[testing::kEndOfText] = -1e9F;
    ASSERT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), id);
    by_hand.append({&id, 1});
  }
}

TEST_P(GenerationTest, SameSeedSameTextOtherSeedOtherText) {
  Session session(model_);
  GenerationOptions options;
  options.n_predict = 20;
  options.sampler.seed = 11;
  const auto first = session.generate("a", options).result();
  EXPECT_EQ(first.seed, 11U);
  EXPECT_EQ(session.generate("a", options).result().ids, first.ids);
  options.sampler.seed = 12;
  EXPECT_NE(session.generate("a", options).result().ids, first.ids);
}

TEST_P(GenerationTest, GoesOnWhereALengthEndedIt) {
  for (const float temperature : {0.0F, 1.5F}) {
    GenerationOptions options;
    options.sampler.temperature = temperature;
    options.sampler.seed = 5;
    options.sampler.repeat_penalty = 1.3F;
    options.sampler.ignore_eos = true;
    options.n_predict = 10;
    Session session(model_);
    const GenerationResult whole = session.generate("the heim", options).result();
    for (const int64_t n_first : {1, 5, 9}) {
      Session halves(model_);
      options.n_predict = n_first;
      GenerationResult sum = halves.generate("the heim", options).result();
      options.n_predict = 10 - n_first;
      const GenerationResult rest = halves.generate(options).result();
      sum.ids.insert(sum.ids.end(), rest.ids.begin(), rest.ids.end());
      EXPECT_EQ(sum.ids, whole.ids);
      EXPECT_EQ(sum.text + rest.text, whole.text);
    }
  }
}

TEST(Generation, ACharacterThatALengthCutsComesWithTheRest) {
  Session session(open_tiny());
  auto options = saying("a\u00e9\u20ac!");
  options.n_predict = 2;  // half of the second character
  std::string text = session.generate("x", options).text();
  EXPECT_EQ(text, "a");
  options.n_predict = GenerationOptions::kUnlimited;
  EXPECT_EQ(session.generate(options).text(), "\u00e9\u20ac!");
}

TEST(Generation, StreamsWholeCharacters) {
  Session session(open_tiny());
  std::string joined;
  std::vector<std::string> pieces;
  auto stream = session.generate("x", saying("a\u00e9\u20ac\U0001F600!"));
  for (const std::string_view piece : stream) pieces.emplace_back(piece);
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "\u00e9", "\u20ac", "\U0001F600", "!"}));
  EXPECT_EQ(stream.result().text, "a\u00e9\u20ac\U0001F600!");
  EXPECT_EQ(stream.result().stop_reason, StopReason::kEndOfText);
  EXPECT_EQ(stream.result().stop_id, testing::kTurnEnd);
  EXPECT_EQ(stream.result().ids.size(), 11U);
  EXPECT_EQ(stream.next(), std::nullopt);
}

TEST(Generation, CompletesTheCharacterThatThePromptBegan) {
  Session session(open_tiny());
  EXPECT_EQ(session.generate("caf\xC3", saying("\xA9 au lait")).text(), "\u00e9 au lait");
}

TEST(Generation, StopStringsSpanTokensAndNeverComeOut) {
  Session session(open_tiny());
  auto options = saying("one two</s");
  options.stop = {"</stop>", "two<"};
  std::string streamed;
  auto stream = session.generate("x", options);
  for (const std::string_view piece : stream) streamed += piece;
  EXPECT_EQ(streamed, "one ");
  EXPECT_EQ(stream.result().text, "one ");
  EXPECT_EQ(stream.result().stop_reason, StopReason::kStopString);
  EXPECT_EQ(stream.result().stop_string, "two<");

  options = saying("one two</sto");  // ends before the stop string is whole: all of it comes out
  options.stop = {"</stop>"};
  EXPECT_EQ(session.generate("x", options).text(), "one two</sto");
}

TEST(Generation, StopIdsAndStopStringsThatSpellControlTokens) {
  Session session(open_tiny());
  auto options = saying("abc");
  options.stop_ids = {'b'};
  auto result = session.generate("x", options).result();
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(result.stop_id, 'b');

  options = GenerationOptions();
  options.sampler.custom = {
      std::make_shared<testing::Script>(std::vector<TokenId>{'a', testing::kTurnStart, 'b'})};
  options.stop = {"<|im_start|>"};
  result = session.generate("x", options).result();
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(result.stop_id, testing::kTurnStart);
}

TEST(Generation, IgnoreEosBansEveryStop) {
  Session session(open_tiny());
  GenerationOptions options;
  options.n_predict = 200;
  options.sampler.ignore_eos = true;
  options.sampler.temperature = 5;
  options.sampler.top_k = 0;
  options.sampler.min_p = 0;
  options.sampler.top_p = 1;
  options.sampler.seed = 4;
  EXPECT_EQ(session.generate("x", options).result().stop_reason, StopReason::kLength);
  options.sampler.ignore_eos = false;
  EXPECT_EQ(session.generate("x", options).result().stop_reason, StopReason::kEndOfText);
}

TEST(Generation, NothingToPredict) {
  Session session(open_tiny());
  const auto result = session.generate("the", greedy(0)).result();
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(result.stop_reason, StopReason::kLength);
  EXPECT_EQ(session.tokens().size(), 1U);
  EXPECT_THROW(session.generate("the", greedy(-3)), ArgumentError);
}

TEST(Generation, ContextOverflowIsAnErrorUnlessAskedOtherwise) {
  const auto model = open_tiny();
  Session session(model, {.n_ctx = 20});
  auto options = greedy(GenerationOptions::kUnlimited);
  options.sampler.ignore_eos = true;
  auto stream = session.generate("0123456789", options);
  try {
    stream.result();
    FAIL() << "no overflow";
  } catch (const ContextOverflowError& error) {
    EXPECT_EQ(error.n_tokens(), 21);
    EXPECT_EQ(error.n_ctx(), 20);
  }
  EXPECT_EQ(stream.so_far().ids.size(), 11U);  // what was sampled is not lost
  EXPECT_EQ(session.tokens().size(), 20U);

  options.n_predict = GenerationOptions::kUntilContextIsFull;
  const auto result = session.generate("0123456789", options).result();
  EXPECT_EQ(result.stop_reason, StopReason::kLength);
  EXPECT_EQ(result.ids.size(), 11U);
  EXPECT_THROW(session.generate("0123456789012345678901"), ContextOverflowError);
}

TEST(Generation, ContextShiftGoesOnAndIsExact) {
  const auto model = open_tiny();
  Session session(model, {.n_ctx = 20});
  auto options = greedy(40);
  options.sampler.ignore_eos = true;
  options.context_shift = true;
  options.n_keep = 4;
  const auto result = session.generate("0123456789", options).result();
  ASSERT_EQ(result.ids.size(), 40U);
  EXPECT_EQ(result.stop_reason, StopReason::kLength);

  // By hand, with a fresh sequence for every token.
  std::vector<TokenId> tokens = model.encode("0123456789");
  for (const TokenId id : result.ids) {
    Session fresh(model);
    fresh.append(tokens);
    auto logits = std::vector<float>(fresh.logits().begin(), fresh.logits().end());
    logits[testing::kTurnEnd] = logits[testing::kEndOfText] = -1e9F;
    ASSERT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), id);
    if (tokens.size() == 20) tokens.erase(tokens.begin() + 4, tokens.begin() + 12);
    tokens.push_back(id);
  }
}

TEST(Generation, CancelsFromAnotherThread) {
  Session session(open_tiny({.n_ctx = 256}));
  GenerationOptions options;
  options.sampler.ignore_eos = true;
  options.context_shift = true;  // would go on for ever
  auto stream = session.generate("x", options);
  ASSERT_TRUE(stream.next());
  std::thread canceller([cancel = options.cancel] { cancel.cancel(); });
  EXPECT_EQ(stream.result().stop_reason, StopReason::kCancelled);
  canceller.join();

  const auto result = session.generate("another", options).result();  // still cancelled
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(result.ids.empty());
  options.cancel.reset();
  options.n_predict = 3;
  EXPECT_EQ(session.generate("another", options).result().ids.size(), 3U);
}

TEST(Generation, ReusesThePrefixAndCounts) {
  Session session(open_tiny());
  auto options = greedy(2);
  options.sampler.ignore_eos = true;
  auto timings = session.generate("0123456789", options).result().timings;
  EXPECT_EQ(timings.n_prompt, 10);
  EXPECT_EQ(timings.n_reused, 0);
  EXPECT_EQ(timings.n_generated, 2);
  EXPECT_GT(timings.prompt_seconds, 0);
  EXPECT_GT(timings.generation_seconds, 0);
  timings = session.generate("01234567ab", options).result().timings;
  EXPECT_EQ(timings.n_prompt, 2);
  EXPECT_EQ(timings.n_reused, 8);
}

// A model shared by threads: each session's answer is what it is alone.
TEST(Generation, SessionsShareAModelBetweenThreads) {
  const auto model = open_tiny();
  const auto answer = [&](std::string_view prompt) {
    Session session(model);
    auto options = greedy(30);
    options.sampler.ignore_eos = true;
    return session.generate(prompt, options).result().ids;
  };
  const auto expected_a = answer("aaa");
  const auto expected_b = answer("bbb");
  std::vector<TokenId> a, b;
  std::thread first([&] { a = answer("aaa"); });
  std::thread second([&] { b = answer("bbb"); });
  first.join();
  second.join();
  EXPECT_EQ(a, expected_a);
  EXPECT_EQ(b, expected_b);
}

TEST(Generation, GoesOnWhereAStreamWasDropped) {
  const auto model = open_tiny();
  auto options = greedy(10);
  options.sampler.ignore_eos = true;
  const auto whole = Session(model).generate("the heim", options).result();
  Session session(model);
  std::vector<TokenId> ids;
  {
    TextStream stream = session.generate("the heim", options);
    stream.next();
    ids = stream.so_far().ids;
  }
  ASSERT_FALSE(ids.empty());
  options.n_predict = 10 - std::ssize(ids);
  const auto rest = session.generate(options).result().ids;
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(ids, whole.ids);
}

TEST(Generation, GoesOnInAFullContext) {
  Session session(open_tiny(), {.n_ctx = 20});
  auto options = greedy(GenerationOptions::kUntilContextIsFull);
  options.sampler.ignore_eos = true;
  EXPECT_EQ(session.generate("0123456789", options).result().ids.size(), 11U);
  const auto full = session.generate(options).result();
  EXPECT_EQ(full.stop_reason, StopReason::kLength);
  EXPECT_TRUE(full.ids.empty());
  options = greedy(5);
  options.sampler.ignore_eos = true;
  EXPECT_THROW(session.generate(options).result(), ContextOverflowError);
  options.context_shift = true;
  EXPECT_EQ(session.generate(options).result().ids.size(), 5U);
}

TEST(Generation, UntilTheContextIsFullEndsThereWithContextShiftToo) {
  const auto model = open_tiny();
  auto options = greedy(GenerationOptions::kUntilContextIsFull);
  options.sampler.ignore_eos = true;
  const auto plain = Session(model, {.n_ctx = 20}).generate("0123456789", options).result();
  options.context_shift = true;
  Session session(model, {.n_ctx = 20});
  auto stream = session.generate("0123456789", options);
  for (int i = 0; i < 100 && stream.next(); ++i) {
  }
  EXPECT_EQ(stream.so_far().stop_reason, StopReason::kLength);
  EXPECT_EQ(stream.so_far().ids, plain.ids);
}

TEST(Generation, TheGreatestLengthsAreNoOverflow) {
  const auto model = open_tiny();
  auto options = saying("ab");
  options.n_predict = INT64_MAX;
  EXPECT_EQ(Session(model).generate("x", options).text(), "ab");
  ChatOptions chat_options;
  chat_options.generation = saying("ab");
  chat_options.generation.n_predict = INT64_MAX;
  EXPECT_EQ(Chat(model, chat_options).ask("x").text(), "ab");
  try {
    Session(model, {.n_ctx = 8}).generate("0123456789", options);
    FAIL() << "no overflow";
  } catch (const ContextOverflowError& error) {
    EXPECT_EQ(error.n_tokens(), 10);
    EXPECT_EQ(error.n_needed(), INT64_MAX);
  }
}

// Makes a candidate of its own.
class Chooses : public Sampler {
 public:
  explicit Chooses(TokenId id) : id_(id) {}
  std::string_view name() const override { return "chooses"; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    candidates.replace({Candidate{id_, 1, 0}});
  }

 private:
  TokenId id_;
};

TEST(Generation, ATokenOfASamplerMustBeOfTheVocabulary) {
  const auto model = open_tiny();
  for (const TokenId id : {-5, 1'000'000, std::numeric_limits<TokenId>::max()}) {
    for (const bool after_sampling : {false, true}) {
      GenerationOptions options;
      options.n_predict = 2;
      options.n_logprobs = 2;
      options.logprobs_after_sampling = after_sampling;
      options.sampler.custom = {std::make_shared<Chooses>(id)};
      options.sampler.order = "chooses";
      EXPECT_THROW(Session(model).generate("the", options).text(), ArgumentError) << id;
      const std::vector<std::string> prompts = {"the"};
      EXPECT_THROW(generate_batch(model, prompts, options), ArgumentError) << id;
      options.sampler.order = "top_k;chooses";
      Session session(model);
      TextStream stream = session.generate("the", options);
      EXPECT_THROW(stream.text(), ArgumentError) << id;
      EXPECT_TRUE(stream.so_far().ids.empty());
    }
  }
}

// What a fresh session says of the same tokens, in f64 with the functions of libm.
TEST(Generation, TellsLogProbabilities) {
  const auto model = open_tiny();
  GenerationOptions options;
  options.n_predict = 6;
  options.n_logprobs = 4;
  options.sampler.seed = 3;
  options.sampler.temperature = 2;
  options.sampler.logit_bias = {{'q', 30}};  // which log-probabilities do not see
  const auto result = Session(model).generate("the heim", options).result();
  ASSERT_EQ(result.logprobs.size(), result.ids.size());
  Session by_hand(model);
  by_hand.append(model.encode("the heim"));
  for (size_t i = 0; i < result.ids.size(); ++i) {
    const auto logits = by_hand.logits();
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    const auto logprob_of = [&](TokenId id) {
      return static_cast<double>(logits[static_cast<size_t>(id)]) - std::log(sum);
    };
    std::vector<TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    const TokenLogprobs& told = result.logprobs[i];
    EXPECT_EQ(told.chosen.id, result.ids[i]);
    EXPECT_EQ(told.chosen.piece, model.decode({&told.chosen.id, 1}, true));
    EXPECT_NEAR(told.chosen.logprob, logprob_of(told.chosen.id), 1e-12);
    ASSERT_EQ(told.best.size(), 4U);
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(told.best[k].id, order[k]);
      EXPECT_EQ(told.best[k].piece, model.decode({&order[k], 1}, true));
      EXPECT_NEAR(told.best[k].logprob, logprob_of(order[k]), 1e-12);
    }
    by_hand.append({&result.ids[i], 1});
  }

  options.n_logprobs = 0;
  EXPECT_TRUE(Session(model).generate("x", options).result().logprobs.at(0).best.empty());
  options.n_logprobs = 100'000;
  EXPECT_EQ(Session(model).generate("x", options).result().logprobs.at(0).best.size(),
            static_cast<size_t>(testing::kTinyVocabulary));
  options.n_logprobs = -1;
  EXPECT_TRUE(Session(model).generate("x", options).result().logprobs.empty());
  options.n_logprobs = -2;
  EXPECT_THROW(Session(model).generate("x", options), ArgumentError);
}

// A token has log-probabilities if a part of its text is in the text. The tokens that end in the
// middle of a character belong to the character.
TEST(Generation, TellsNoLogProbabilitiesOfAStopString) {
  const auto model = open_tiny();
  const auto n_told = [&](const std::string& stop, int64_t n_predict) {
    GenerationOptions options;
    options.sampler.custom = {std::make_shared<testing::Script>(
        std::vector<TokenId>{'a', testing::kThe, 'n', 0xC3, 0xA9, '!', testing::kTurnEnd})};
    options.n_logprobs = 0;
    options.n_predict = n_predict;
    options.stop = {stop};
    const auto result = Session(model).generate("x", options).result();
    for (size_t i = 0; i < result.logprobs.size(); ++i)
      EXPECT_EQ(result.logprobs[i].chosen.id, result.ids[i]);
    return std::pair(result.ids.size(), result.logprobs.size());
  };
  EXPECT_EQ(n_told("en", -1), std::pair(size_t{3}, size_t{2}));  // "the" has text before "en"
  EXPECT_EQ(n_told("then", -1), std::pair(size_t{3}, size_t{1}));
  EXPECT_EQ(n_told("\xC3\xA9!", -1), std::pair(size_t{6}, size_t{3}));
  EXPECT_EQ(n_told("!", -1), std::pair(size_t{6}, size_t{5}));
  EXPECT_EQ(n_told("!?", -1), std::pair(size_t{6}, size_t{6}));  // the stop string never comes
  EXPECT_EQ(n_told("en?", 2), std::pair(size_t{2}, size_t{2}));
  EXPECT_EQ(n_told("?", 4), std::pair(size_t{4}, size_t{4}));  // half of a character
}

TEST(Generation, ShowsControlTokensWhenAsked) {
  const auto model = open_tiny();
  for (const bool show : {false, true}) {
    GenerationOptions options;
    options.sampler.custom = {std::make_shared<testing::Script>(
        std::vector<TokenId>{'a', testing::kTurnStart, 'b', testing::kTurnEnd})};
    options.show_special = show;
    EXPECT_EQ(Session(model).generate("x", options).text(), show ? "a<|im_start|>b" : "ab");
  }
}

TEST(Generation, AShiftMayKeepTheWholePrompt) {
  const auto model = open_tiny();
  Session session(model, {.n_ctx = 20});
  auto options = greedy(30);
  options.sampler.ignore_eos = true;
  options.context_shift = true;
  options.n_keep = -1;
  const auto prompt = model.encode("0123456789");
  const auto result = session.generate("0123456789", options).result();
  ASSERT_EQ(result.ids.size(), 30U);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), session.tokens().begin()));
  auto same = options;
  same.n_keep = std::ssize(prompt);
  EXPECT_EQ(Session(model, {.n_ctx = 20}).generate("0123456789", same).result().ids, result.ids);
}

// A wish that leaves nothing to drop is lowered to the context less four tokens.
TEST(Generation, AShiftDropsSomethingWhateverItIsToKeep) {
  const auto model = open_tiny();
  const auto said = [&](int64_t n_ctx, int64_t n_keep) {
    auto options = greedy(40);
    options.sampler.ignore_eos = true;
    options.context_shift = true;
    options.n_keep = n_keep;
    return Session(model, {.n_ctx = n_ctx}).generate("0123", options).result().ids;
  };
  EXPECT_EQ(said(20, 1000), said(20, 16));
  for (const int64_t n_ctx : {4, 5}) {
    for (const int64_t n_keep : {-1, 2, 100}) EXPECT_EQ(said(n_ctx, n_keep).size(), 40U);
  }
}

TEST(Generation, ATokenThatTheTokenizerLacksHasNoText) {
  testing::TinyShape shape;
  shape.vocab_size = testing::kTinyVocabulary + 9;
  auto model =
      Model::load(testing::tiny_checkpoint(shape), make_executor("cpu", {.n_threads = 1}), {});
  const LanguageModel padded(
      std::make_shared<Engine>(std::move(model), tokenizer_from(*testing::tiny_model_checkpoint()),
                               OpenOptions(), MemoryPlan()));
  GenerationOptions options;
  options.n_predict = 3;
  options.sampler.custom = {std::make_shared<testing::Script>(
      std::vector<TokenId>{'a', static_cast<TokenId>(testing::kTinyVocabulary), 'b'})};
  const GenerationResult result = Session(padded).generate("x", options).result();
  EXPECT_EQ(result.text, "ab");
  EXPECT_EQ(result.ids.size(), 3U);
  EXPECT_EQ(padded.decode(result.ids), "ab");
  const auto beyond = static_cast<TokenId>(padded.vocab_size());
  EXPECT_THROW(padded.decode({&beyond, 1}), ArgumentError);
}

}  // namespace
}  // namespace limpid
