#include "limpid/session.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "executor/delegating_executor.h"
#include "generate/tiny_model.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {
namespace {

using testing::open_tiny;

std::vector<TokenId> some_ids(int64_t n, TokenId offset = 0) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<TokenId>((i * i * 7 + 3 * i + 1 + offset) % 256));
  return ids;
}

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<float> fresh_logits(const LanguageModel& model, std::span<const TokenId> ids) {
  Session session(model);
  session.append(ids);
  return copy(session.logits());
}

class SessionTest : public ::testing::TestWithParam<const char*> {
 protected:
  LanguageModel model(int64_t n_batch = 512, int n_threads = 2) {
    return open_tiny({.n_batch = n_batch, .device = GetParam(), .n_threads = n_threads});
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, SessionTest, ::testing::Values("reference", "cpu"));

TEST_P(SessionTest, GivesTheSameLogitsForEveryChunk) {
  const auto ids = some_ids(150);
  const auto expected = fresh_logits(model(), ids);
  for (const int64_t n_batch : {1, 7, 64}) {
    for (const int n_threads : {1, 3})
      EXPECT_EQ(fresh_logits(model(n_batch, n_threads), ids), expected);
  }
}

TEST_P(SessionTest, ShowsTheLogitsOfEachToken) {
  const auto m = model(16);
  const auto ids = some_ids(40);
  Session session(m);
  std::vector<int64_t> positions;
  std::vector<std::vector<float>> seen;
  session.append(ids, [&](int64_t position, std::span<const float> logits) {
    positions.push_back(position);
    seen.push_back(copy(logits));
  });
  ASSERT_EQ(positions.size(), 40U);
  EXPECT_EQ(positions.back(), 39);
  EXPECT_EQ(copy(session.logits()), seen.back());
  for (const size_t n : {1U, 15U, 16U, 33U})
    EXPECT_EQ(seen[n - 1], fresh_logits(m, std::span(ids).first(n)));
}

TEST_P(SessionTest, AssignKeepsTheCommonPrefixOnly) {
  const auto m = model();
  const auto first = some_ids(100);
  auto second = first;
  second.resize(80);
  second[70] = (second[70] + 1) % 256;
  Session session(m);
  EXPECT_EQ(session.assign(first), 0);
  EXPECT_EQ(session.assign(second), 70);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, second));
  EXPECT_EQ(session.assign(second), 80);  // nothing to do
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, second));
  EXPECT_EQ(session.assign(std::span(second).first(50)),
            49);  // the last token anew, for its logits
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, std::span(second).first(50)));
  EXPECT_EQ(session.tokens().size(), 50U);
}

// The tokens of a session may be given to it, although it changes them.
TEST_P(SessionTest, TakesItsOwnTokens) {
  const auto m = model();
  const auto ids = some_ids(70);
  auto twice = ids;
  twice.insert(twice.end(), ids.begin(), ids.end());
  Session session(m);
  session.append(ids);
  EXPECT_EQ(session.append(session.tokens()), 70);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, twice));
  session.assign(session.tokens().subspan(60, 20));
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, std::span(twice).subspan(60, 20)));
}

TEST_P(SessionTest, TruncateForgetsTokens) {
  const auto m = model();
  const auto ids = some_ids(70);
  Session session(m);
  session.append(ids);
  session.truncate(65);
  EXPECT_EQ(session.tokens().size(), 65U);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, std::span(ids).first(65)));
  session.truncate(60);
  GenerationOptions options;
  options.n_predict = 1;
  EXPECT_EQ(session.generate(options).result().ids.size(), 1U);
  session.truncate(0);
  EXPECT_THROW(session.logits(), ArgumentError);
  EXPECT_THROW(session.generate(options), ArgumentError);
  session.append(std::span(ids).first(65));
  session.append(std::span(ids).subspan(65));
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, ids));
}

TEST_P(SessionTest, ShiftIsThatOfAFreshSequence) {
  const auto m = model();
  const auto ids = some_ids(101);
  Session session(m);
  session.append(ids);
  EXPECT_EQ(session.shift(5), 48);
  std::vector<TokenId> expected(ids.begin(), ids.begin() + 5);
  expected.insert(expected.end(), ids.begin() + 53, ids.end());
  EXPECT_EQ(std::vector<TokenId>(session.tokens().begin(), session.tokens().end()), expected);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, expected));
  EXPECT_THROW(session.shift(1000), ArgumentError);
}

TEST_P(SessionTest, AShiftCanBeCancelled) {
  const auto m = model();
  const auto ids = some_ids(101);
  Session session(m);
  session.append(ids);
  CancelToken cancel;
  cancel.cancel();
  EXPECT_EQ(session.shift(5, &cancel), 48);
  EXPECT_EQ(session.tokens().size(), 5U);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, std::span(ids).first(5)));
}

TEST_P(SessionTest, OverflowTellsTheCountsAndChangesNothing) {
  const auto m = model();
  Session session(m, {.n_ctx = 60});
  session.append(some_ids(50));
  const auto before = copy(session.logits());
  try {
    session.append(some_ids(11));
    FAIL() << "no overflow";
  } catch (const ContextOverflowError& error) {
    EXPECT_EQ(error.n_tokens(), 61);
    EXPECT_EQ(error.n_ctx(), 60);
  }
  EXPECT_THROW(session.assign(some_ids(61)), ContextOverflowError);
  EXPECT_EQ(session.tokens().size(), 50U);
  EXPECT_EQ(copy(session.logits()), before);
  session.append(some_ids(10));  // exactly full
  EXPECT_EQ(session.tokens().size(), 60U);
}

TEST(Session, RefusesIdsOutsideTheVocabularyAndBadSizes) {
  const auto m = open_tiny();
  Session session(m);
  EXPECT_THROW(session.append(std::vector<TokenId>{1, 263}), ArgumentError);
  EXPECT_THROW(session.append(std::vector<TokenId>{-1}), ArgumentError);
  EXPECT_TRUE(session.tokens().empty());
  EXPECT_THROW(session.logits(), ArgumentError);
  EXPECT_THROW(session.generate(), ArgumentError);
  EXPECT_THROW(session.assign({}), ArgumentError);
  EXPECT_THROW(Session(m, {.n_ctx = 257}), ArgumentError);
}

TEST(Session, CancelStopsBetweenChunks) {
  Session session(open_tiny({.n_batch = 8}));
  CancelToken cancel;
  EXPECT_EQ(session.append(some_ids(20), &cancel), 20);
  cancel.cancel();
  EXPECT_EQ(session.append(some_ids(20), &cancel), 0);
  EXPECT_EQ(session.tokens().size(), 20U);
}

TEST(Session, AStreamOutlivesItsSession) {
  auto session = std::make_unique<Session>(open_tiny());
  TextStream stream = session->generate("x", testing::saying("hello"));
  session.reset();
  EXPECT_EQ(stream.text(), "hello");
}

TEST(Session, IsTheOpenStreamsAlone) {
  Session session(open_tiny());
  std::optional<TextStream> stream(session.generate("x", testing::saying("ab")));
  EXPECT_EQ(stream->next(), "a");
  const auto before = std::vector(session.tokens().begin(), session.tokens().end());
  EXPECT_THROW(session.generate(), ArgumentError);
  EXPECT_THROW(session.generate("y"), ArgumentError);
  EXPECT_THROW(session.append(some_ids(1)), ArgumentError);
  EXPECT_THROW(session.append(some_ids(1), [](int64_t, std::span<const float>) {}), ArgumentError);
  EXPECT_THROW(session.assign(some_ids(1)), ArgumentError);
  EXPECT_THROW(session.truncate(0), ArgumentError);
  EXPECT_THROW(session.shift(0), ArgumentError);
  EXPECT_EQ(std::vector(session.tokens().begin(), session.tokens().end()), before);
  stream.reset();  // dropped early
  session.truncate(0);
  EXPECT_EQ(session.generate("y", testing::saying("c")).text(), "c");
  EXPECT_THROW(session.generate(std::string(400, 'y')), ContextOverflowError);
  session.truncate(0);  // what failed to begin is not open
}

// The last token that generate() gives is part of the sequence, though it is evaluated only when
// something follows it.
TEST(Session, GoesOnAfterTheLastTokenOfAnAnswer) {
  const auto m = open_tiny();
  GenerationOptions options;
  options.n_predict = 4;
  options.sampler.temperature = 0;
  options.sampler.ignore_eos = true;
  Session session(m);
  const auto ids = session.generate("the heim", options).result().ids;
  auto sequence = m.encode("the heim");
  sequence.insert(sequence.end(), ids.begin(), ids.end());
  EXPECT_EQ(session.tokens().size(), sequence.size() - 1);

  const auto more = some_ids(3);
  sequence.insert(sequence.end(), more.begin(), more.end());
  EXPECT_EQ(session.append(more), 3);
  EXPECT_EQ(std::vector(session.tokens().begin(), session.tokens().end()), sequence);
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, sequence));

  session.generate(options).result();
  std::vector<int64_t> positions;
  session.append(some_ids(1),
                 [&](int64_t position, std::span<const float>) { positions.push_back(position); });
  EXPECT_EQ(positions, std::vector<int64_t>{std::ssize(sequence) + 4});

  session.generate(options).result();
  session.truncate(std::ssize(sequence));  // the answers are gone, their last tokens too
  session.append(more);
  sequence.insert(sequence.end(), more.begin(), more.end());
  EXPECT_EQ(std::vector(session.tokens().begin(), session.tokens().end()), sequence);

  session.generate(options).result();
  session.assign(sequence);
  session.append(more);
  sequence.insert(sequence.end(), more.begin(), more.end());
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, sequence));
}

TEST(Session, TheLastTokenOfAnAnswerTakesRoomToo) {
  const auto m = open_tiny();
  Session session(m, {.n_ctx = 12});
  auto options = testing::saying("ab");
  options.n_predict = 2;
  session.generate("01234567", options).result();  // 8 and 1, and 1 to come
  EXPECT_THROW(session.append(some_ids(3)), ContextOverflowError);
  EXPECT_EQ(session.tokens().size(), 9U);
  session.append(some_ids(2));
  EXPECT_EQ(session.tokens().size(), 12U);
}

TEST(Session, CanBeMoved) {
  const auto m = open_tiny();
  const auto ids = some_ids(20);
  Session first(m);
  first.append(ids);
  Session second(std::move(first));
  EXPECT_EQ(second.tokens().size(), 20U);
  EXPECT_EQ(copy(second.logits()), fresh_logits(m, ids));

  Session third(m);
  TextStream stream = third.generate("x", testing::saying("old"));
  third = std::move(second);  // the stream has the old one's state
  EXPECT_EQ(third.tokens().size(), 20U);
  EXPECT_EQ(stream.text(), "old");
  third.append(ids);
  EXPECT_EQ(third.tokens().size(), 40U);

  first = std::move(third);  // one that was moved from may be assigned to
  EXPECT_EQ(first.tokens().size(), 40U);
  TextStream moving = first.generate(testing::saying("abc"));
  EXPECT_EQ(moving.next(), "a");
  Session last(std::move(first));
  TextStream moved(std::move(moving));
  EXPECT_THROW(last.truncate(0), ArgumentError);  // it is open still
  EXPECT_EQ(moved.next(), "b");
  moving = std::move(moved);
  EXPECT_EQ(moving.text(), "abc");
  moving = TextStream(last.generate(testing::saying("d")));
  EXPECT_EQ(moving.text(), "d");
}

// Stops the step of that number until it is told to go on.
class PausingExecutor final : public DelegatingExecutor {
 public:
  PausingExecutor(int64_t n_before, std::latch& reached, std::latch& go_on)
      : DelegatingExecutor(make_executor("reference", {.n_threads = 1})),
        n_before_(n_before),
        reached_(reached),
        go_on_(go_on) {}
  void begin_step() override {
    if (n_before_-- == 0) {
      reached_.count_down();
      go_on_.wait();
    }
    DelegatingExecutor::begin_step();
  }

 private:
  int64_t n_before_;
  std::latch& reached_;
  std::latch& go_on_;
};

TEST(Session, CancelsFromAnotherThreadInTheMiddleOfAPrompt) {
  std::latch in_prompt(1), cancelled(1);
  constexpr int64_t kBefore = 5;
  OpenOptions options;
  options.n_batch = 1;
  auto loaded = Model::load(testing::tiny_model_checkpoint(),
                            std::make_unique<PausingExecutor>(kBefore, in_prompt, cancelled));
  auto tokenizer = tokenizer_from(loaded->checkpoint());
  const LanguageModel m(
      std::make_shared<Engine>(std::move(loaded), std::move(tokenizer), options, MemoryPlan()));
  Session session(m);
  GenerationOptions generation;
  std::thread canceller([&, cancel = generation.cancel] {
    in_prompt.wait();
    cancel.cancel();
    cancelled.count_down();
  });
  const auto result = session.generate("0123456789", generation).result();
  canceller.join();
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(result.timings.n_prompt, kBefore + 1);  // the step under way was finished
  EXPECT_EQ(session.tokens().size(), static_cast<size_t>(kBefore + 1));
  generation.cancel.reset();
  generation.n_predict = 2;
  EXPECT_EQ(session.generate("0123456789", generation).result().timings.n_reused, kBefore + 1);
}

TEST_P(SessionTest, WhatLookingThrowsComesThrough) {
  const auto m = model();
  const auto ids = some_ids(20);
  Session session(m);
  session.append(std::span(ids).first(5));
  const auto look = [](int64_t position, std::span<const float>) {
    if (position == 7) throw std::runtime_error("enough");
  };
  EXPECT_THROW(session.append(std::span(ids).subspan(5), look), std::runtime_error);
  const std::vector<TokenId> tokens(session.tokens().begin(), session.tokens().end());
  EXPECT_EQ(copy(session.logits()), fresh_logits(m, tokens));
}

TEST(Session, OptionsThatWereMovedFromKeepTheirCancelToken) {
  GenerationOptions options;
  const GenerationOptions moved = std::move(options);
  options.cancel.cancel();  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved.cancel.cancelled());
}

}  // namespace
}  // namespace limpid
