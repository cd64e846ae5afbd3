#include "generate/step_speed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace limpid {
namespace {

constexpr int64_t kLayers = 30;
constexpr int64_t kMost = 512;
constexpr double kAnswers = 0.003;  // seconds of a tick without prompts

// What a machine takes, in seconds.
struct Machine {
  double answers_beside = kAnswers;  // all layers, while a prompt comes in
  double shared_layer = 5e-5;        // of a layer that a chunk shares, however few tokens it has
  double token_layer = 3e-5;         // and of each token
};

StepSpeed with_usual_ticks() {
  StepSpeed speed(kLayers);
  for (int i = 0; i < 50; ++i) speed.learn_answers(kAnswers);
  speed.learn_prompts(kMost * kLayers * Machine().token_layer, kMost, kLayers);
  return speed;
}

struct Result {
  double tick;    // mean length, as a multiple of the usual one
  double tokens;  // of the last chunk
};

// A long prompt comes in. Every `interrupted`-th tick takes ten times as long.
Result run_prompt(StepSpeed& speed, double factor, const Machine& machine, int n_chunks,
                  int interrupted = INT32_MAX) {
  double sum = 0;
  int64_t n_tokens = 0;
  int n_ticks = 0;
  for (int chunk = 0; chunk < n_chunks; ++chunk) {
    n_tokens = std::max<int64_t>(2, static_cast<int64_t>(speed.chunk_tokens(factor, kMost)));
    for (int64_t done = 0; done < kLayers;) {
      const double fitting = speed.layers_of_tick(factor, n_tokens);
      const auto n_left = static_cast<double>(kLayers - done);
      const auto n = static_cast<int64_t>(std::clamp(std::round(fitting), 1.0, n_left));
      const double times = ++n_ticks % interrupted == 0 ? 10 : 1;
      const double own =
          times * machine.answers_beside * static_cast<double>(kLayers - n) / kLayers;
      const double shared =
          times * static_cast<double>(n) *
          (machine.shared_layer + static_cast<double>(n_tokens) * machine.token_layer);
      speed.learn_prompts(shared, n_tokens, n);
      if (n < kLayers) speed.learn_answers_beside(own, kLayers - n);
      sum += own + shared;
      done += n;
    }
  }
  return {sum / n_ticks / kAnswers, static_cast<double>(n_tokens)};
}

TEST(StepSpeed, WithoutKnowledgeThereIsTimeForAll) {
  StepSpeed speed(kLayers);
  EXPECT_EQ(speed.chunk_tokens(4, kMost), kMost);
  EXPECT_GE(speed.layers_of_tick(4, kMost), kLayers);
  speed.learn_prompts(1, kMost, kLayers);  // no tick without prompts yet
  EXPECT_EQ(speed.chunk_tokens(4, kMost), kMost);
  EXPECT_GE(speed.layers_of_tick(4, kMost), kLayers);
}

TEST(StepSpeed, APromptThatFitsSharesAllLayers) {
  const StepSpeed speed = with_usual_ticks();
  EXPECT_EQ(speed.chunk_tokens(4, 8), 8);
  EXPECT_GE(speed.layers_of_tick(4, 8), kLayers);
}

TEST(StepSpeed, TicksAreAsLongAsTheBoundAllows) {
  for (const double factor : {2.0, 4.0, 8.0}) {
    StepSpeed speed = with_usual_ticks();
    EXPECT_NEAR(run_prompt(speed, factor, {}, 50).tick, factor, 0.08 * factor);
  }
}

TEST(StepSpeed, AnswersThatTakeLongerBesideAPromptLeaveItLessTime) {
  StepSpeed speed = with_usual_ticks();
  EXPECT_NEAR(run_prompt(speed, 4, {.answers_beside = 2 * kAnswers}, 50).tick, 4, 0.32);
}

TEST(StepSpeed, WithoutTimeAChunkIsSmall) {
  EXPECT_LE(with_usual_ticks().chunk_tokens(1, kMost), 4);
}

// More answers go on while prompts come in all the time, or fewer.
TEST(StepSpeed, FollowsTheNumberOfAnswers) {
  StepSpeed speed = with_usual_ticks();
  const double tokens = run_prompt(speed, 4, {}, 50).tokens;
  const Machine of_many{.answers_beside = 10 * kAnswers, .shared_layer = 5e-4};
  EXPECT_GT(run_prompt(speed, 4, of_many, 50).tokens, tokens);
  for (int i = 0; i < 20; ++i) speed.learn_answers(kAnswers);
  EXPECT_NEAR(run_prompt(speed, 4, {}, 50).tokens, tokens, 2);
}

TEST(StepSpeed, AModelOfOneLayerKeepsTheBound) {
  StepSpeed speed(1);
  speed.learn_answers(1);
  speed.learn_prompts(kMost, kMost, 1);
  EXPECT_NEAR(speed.chunk_tokens(4, kMost), 4, 1e-9);
}

// While a prompt comes in, no tick is without a prompt, so a wrong length would stay.
TEST(StepSpeed, OneInterruptedTickDoesNotSpoilTheBound) {
  StepSpeed speed = with_usual_ticks();
  speed.learn_answers(100 * kAnswers);
  EXPECT_LE(run_prompt(speed, 4, {}, 50).tick, 4 * 1.3);
}

TEST(StepSpeed, FollowsTokensThatGetSlower) {
  StepSpeed speed = with_usual_ticks();
  const double before = run_prompt(speed, 4, {}, 50).tokens;
  const Result after = run_prompt(speed, 4, {.token_layer = 9e-5}, 50);
  EXPECT_NEAR(after.tokens, before / 3, before / 10);
}

// A few tokens take almost as long as more. After interrupted ticks, each of few tokens seems too
// slow for one more.
TEST(StepSpeed, FindsAfterInterruptionsThatMoreTokensHardlyTakeLonger) {
  const Machine machine{.shared_layer = 2e-4, .token_layer = 1e-5};
  StepSpeed speed = with_usual_ticks();
  const double undisturbed = run_prompt(speed, 4, machine, 50).tokens;
  EXPECT_LT(run_prompt(speed, 4, machine, 50, 3).tokens, undisturbed);
  EXPECT_NEAR(run_prompt(speed, 4, machine, 50).tokens, undisturbed, 1);
}

}  // namespace
}  // namespace limpid
