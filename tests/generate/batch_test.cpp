#include "limpid/batch.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "generate/generation_task.h"
#include "generate/tiny_model.h"

namespace limpid {
namespace {

using testing::open_tiny;

void expect_equal(const GenerationResult& a, const GenerationResult& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.stop_reason, b.stop_reason);
  EXPECT_EQ(a.stop_string, b.stop_string);
  EXPECT_EQ(a.stop_id, b.stop_id);
  EXPECT_EQ(a.timings.n_generated, b.timings.n_generated);
}

class BatchTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Executors, BatchTest, ::testing::Values("reference", "cpu"));

TEST_P(BatchTest, EveryResultIsThatOfThePromptAlone) {
  const std::vector<std::string> prompts = {"a", "the heim", std::string(90, 'x'), "0123456789",
                                            "\u20ac\u20ac"};
  for (const float temperature : {0.0F, 1.2F}) {
    GenerationOptions options;
    options.n_predict = 25;
    options.sampler.temperature = temperature;
    options.sampler.seed = 77;
    options.sampler.repeat_penalty = 1.1F;
    options.stop = {"e", "9"};
    std::vector<GenerationResult> alone;
    const auto model = open_tiny({.device = GetParam()});
    for (const auto& prompt : prompts) {
      Session session(model);
      alone.push_back(session.generate(prompt, options).result());
    }
    for (const int64_t n_batch : {1, 16, 512}) {
      const auto batch_model =
          open_tiny({.n_batch = n_batch, .device = GetParam(), .n_threads = 3});
      std::vector<std::string> streamed(prompts.size());
      const auto together =
          generate_batch(batch_model, prompts, options,
                         [&](size_t i, std::string_view piece) { streamed[i] += piece; });
      ASSERT_EQ(together.size(), prompts.size());
      for (size_t i = 0; i < prompts.size(); ++i) {
        SCOPED_TRACE(i);
        expect_equal(together[i], alone[i]);
        EXPECT_EQ(streamed[i], alone[i].text);
      }
    }
  }
}

TEST_P(BatchTest, ShiftsTheContextAsASessionDoes) {
  const std::vector<std::string> prompts = {"0123456789", "ab"};
  GenerationOptions options;
  options.n_predict = 60;
  options.sampler.temperature = 0;
  options.sampler.ignore_eos = true;
  options.context_shift = true;
  const auto model = open_tiny({.device = GetParam()});
  for (const int64_t n_keep : {3, 1000}) {
    options.n_keep = n_keep;
    const auto together = generate_batch(model, prompts, options, {}, 24);
    for (size_t i = 0; i < prompts.size(); ++i) {
      Session session(model, {.n_ctx = 24});
      expect_equal(together[i], session.generate(prompts[i], options).result());
    }
  }
}

TEST(Batch, ReportsOverflowAndCancels) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"ab", std::string(30, 'x')};
  EXPECT_THROW(generate_batch(model, prompts, {}, {}, 20), ContextOverflowError);
  GenerationOptions options;
  options.sampler.ignore_eos = true;
  EXPECT_THROW(generate_batch(model, prompts, options, {}, 40), ContextOverflowError);
  size_t n_pieces = 0;
  options.context_shift = true;
  const auto results = generate_batch(model, prompts, options, [&](size_t, std::string_view) {
    if (++n_pieces == 5) options.cancel.cancel();
  });
  for (const auto& result : results) EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(generate_batch(model, {}, options).empty());
}

TEST(Batch, WithErrorsTheOtherPromptsGoOn) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"ab", std::string(30, 'x'), "cd"};
  GenerationOptions options;
  options.n_predict = 5;
  options.sampler.temperature = 0;
  std::vector<std::exception_ptr> errors;
  const auto refuse_last = [](size_t i, std::string_view) {
    if (i == 2) throw std::runtime_error("no room for text");
  };
  const auto results = generate_batch(model, prompts, options, refuse_last, 20, &errors);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0], nullptr);
  Session session(model);
  expect_equal(results[0], session.generate(prompts[0], options).result());
  EXPECT_THROW(std::rethrow_exception(errors[1]), ContextOverflowError);
  EXPECT_THROW(std::rethrow_exception(errors[2]), std::runtime_error);
}

// Text that was held back comes when a task is cancelled, between two steps. What the listener
// throws then is an error of its task, not of the thread that runs the steps of all.
TEST(Batch, AListenerThatThrowsEndsItsTaskOnly) {
  const auto model = open_tiny();
  GenerationOptions options = testing::saying("aaaaaaaa");
  options.stop = {"ab"};  // each "a" waits for the next token
  std::exception_ptr error;
  GenerationTask::Listener listener;
  listener.on_token = [&](std::string_view piece, const GenerationResult&) {
    if (options.cancel.cancelled()) throw std::runtime_error("no room for text");
    if (!piece.empty()) options.cancel.cancel();
  };
  listener.on_end = [&](const GenerationResult&, std::exception_ptr problem) {
    error = std::move(problem);
  };
  Scheduler& scheduler = engine_of(model)->scheduler();
  scheduler.reserve(64);
  scheduler.submit(std::make_shared<GenerationTask>(*engine_of(model), model.encode("x"), options,
                                                    64, listener));
  while (scheduler.tick()) {
  }
  ASSERT_TRUE(error != nullptr);
  EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
}

// It would wait for the pass in which it runs.
TEST(Batch, ACallbackCannotEvaluateWithTheSameModel) {
  const auto model = open_tiny();
  const auto other = open_tiny();
  const std::vector<std::string> prompts = {"a", "b"};
  const auto evaluate = [](const LanguageModel& by) { Session(by).append(by.encode("x")); };
  const GenerationOptions options = testing::saying("ok");
  EXPECT_THROW(generate_batch(model, prompts, options, [&](size_t, auto) { evaluate(model); }),
               ArgumentError);
  EXPECT_THROW(Session(model).append(model.encode("abc"), [&](int64_t, auto) { evaluate(model); }),
               ArgumentError);
  EXPECT_THROW(generate_batch(model, prompts, options,
                              [&](size_t, auto) { generate_batch(model, prompts, options); }),
               ArgumentError);
  generate_batch(model, prompts, options, [&](size_t, auto) { evaluate(other); });
  evaluate(model);  // afterwards it can
}

// What is refused in a callback leaves the session as it was.
TEST(Batch, ASessionThatACallbackUsesCanBeUsedAgain) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"a"};
  Session session(model);
  session.append(model.encode("x"));
  const size_t n_tokens = session.tokens().size();
  const auto use = [&](size_t, auto) { session.append(model.encode("y")); };
  EXPECT_THROW(generate_batch(model, prompts, testing::saying("ok"), use), ArgumentError);
  EXPECT_EQ(session.tokens().size(), n_tokens);
  use(0, 0);
  EXPECT_GT(session.tokens().size(), n_tokens);
}

TEST(Batch, WhatACallbackAsksOfItsOwnSessionChangesNothing) {
  const auto model = open_tiny();
  const auto ids = model.encode("abc");
  Session session(model), other(model);
  other.append(model.encode("xyz"));
  GenerationOptions options = testing::saying("ok");
  TextStream stream = other.generate(options);
  std::vector<TokenId> kept(other.tokens().begin(), other.tokens().end());
  session.append(ids, [&](int64_t, auto) {
    EXPECT_THROW(session.append(ids), ArgumentError);
    EXPECT_THROW(session.assign(std::span(ids).first(1)), ArgumentError);
    EXPECT_THROW(session.truncate(1), ArgumentError);
    EXPECT_THROW(session.shift(1), ArgumentError);
    EXPECT_THROW(session.generate("x"), ArgumentError);
    EXPECT_THROW(stream.next(), ArgumentError);
  });
  EXPECT_TRUE(std::ranges::equal(session.tokens(), ids));
  EXPECT_EQ(session.logits().size(), static_cast<size_t>(model.vocab_size()));
  EXPECT_TRUE(std::ranges::equal(other.tokens(), kept));
  EXPECT_EQ(stream.text(), "ok");
}

// The end of a session releases its blocks, in the pass in which the callback runs.
TEST(Batch, ACallbackMayDestroySessions) {
  const auto model = open_tiny();
  std::optional<Session> own(model), other(model);
  other->append(model.encode("x"));
  own->append(model.encode("abc"), [&](int64_t, auto) {
    other.reset();
    own.reset();
  });
  EXPECT_FALSE(own || other);
  other.emplace(model).append(model.encode("x"));
  const std::vector<std::string> prompts = {"a", "b"};
  const auto results =
      generate_batch(model, prompts, testing::saying("ok"), [&](size_t, auto) { other.reset(); });
  for (const auto& result : results) EXPECT_EQ(result.text, "ok");
  const KvCache* cache = nullptr;
  engine_of(model)->scheduler().with_cache([&](KvCache& kept) { cache = &kept; });
  EXPECT_EQ(cache->n_free_blocks(), cache->n_blocks());
}

TEST(Batch, RefusesALongerContextThanTheModels) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"a"};
  for (const int64_t n : {int64_t{-1}, model.n_ctx() + 1})
    EXPECT_THROW(generate_batch(model, prompts, testing::saying("ok"), {}, n), ArgumentError) << n;
}

TEST(Batch, TheGreatestLengthIsNoOverflow) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"ab", "cde"};
  GenerationOptions options;
  options.n_predict = INT64_MAX;
  options.stop_ids.resize(testing::kTinyVocabulary);
  std::iota(options.stop_ids.begin(), options.stop_ids.end(), 0);  // ends at the first token
  for (const auto& result : generate_batch(model, prompts, options))
    EXPECT_EQ(result.stop_reason, StopReason::kEndOfText);
}

TEST(Batch, AllPromptsShareEachPass) {
  const auto model = open_tiny();
  const std::vector<std::string> prompts = {"a", "b", "c", "d", "e", "f", "g", "h"};
  GenerationOptions options;
  options.n_predict = 6;
  options.sampler.temperature = 0;
  options.sampler.ignore_eos = true;
  generate_batch(model, prompts, options);
  EXPECT_EQ(engine_of(model)->scheduler().usage().n_passes, 6);
}

}  // namespace
}  // namespace limpid
