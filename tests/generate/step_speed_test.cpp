#include "generate/step_speed.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace limpid {
namespace {

constexpr double kStep = 0.003;         // seconds of a step without prompts
constexpr double kPromptToken = 0.001;  // and of each prompt token beside it
constexpr int64_t kMost = 512;

// Steps with as many prompt tokens as the bound allows, and their mean length.
double mean_length(StepSpeed& speed, double factor, double token_seconds, int n_steps) {
  double sum = 0;
  for (int i = 0; i < n_steps; ++i) {
    const int64_t n = speed.prompt_tokens_within(factor, kMost);
    const double seconds = kStep + static_cast<double>(n) * token_seconds;
    speed.learn(seconds, n, true);
    sum += seconds;
  }
  return sum / n_steps;
}

StepSpeed with_usual_steps() {
  StepSpeed speed;
  for (int i = 0; i < 50; ++i) speed.learn(kStep, 0, false);
  return speed;
}

TEST(StepSpeed, WithoutKnowledgeAllTokensAreTaken) {
  EXPECT_EQ(StepSpeed().prompt_tokens_within(4, kMost), kMost);
}

TEST(StepSpeed, StepsAreAsLongAsTheBoundAllows) {
  for (const double factor : {2.0, 4.0, 8.0}) {
    StepSpeed speed = with_usual_steps();
    speed.learn(kMost * kPromptToken, kMost, false);
    const double length = mean_length(speed, factor, kPromptToken, 200) / kStep;
    EXPECT_LE(length, factor * 1.02);
    EXPECT_GE(length, factor - kPromptToken / kStep);  // less than one token is left
  }
}

// While a prompt comes in, no step is without a prompt, so a wrong length would stay.
TEST(StepSpeed, OneInterruptedStepDoesNotSpoilTheBound) {
  StepSpeed speed = with_usual_steps();
  speed.learn(kMost * kPromptToken, kMost, false);
  speed.learn(100 * kStep, 0, false);
  EXPECT_LE(mean_length(speed, 4, kPromptToken, 200), 4 * 1.25 * kStep);
}

TEST(StepSpeed, FollowsTokensThatGetSlower) {
  StepSpeed speed = with_usual_steps();
  speed.learn(kMost * kPromptToken, kMost, false);
  mean_length(speed, 4, 3 * kPromptToken, 20);
  EXPECT_EQ(speed.prompt_tokens_within(4, kMost), 3);
}

// 8 tokens fit, and add 9 ms; 4 add 8 ms. After interrupted steps, each of few tokens seems too
// slow for one more.
TEST(StepSpeed, FindsThatMoreTokensHardlyTakeLonger) {
  StepSpeed speed = with_usual_steps();
  speed.learn(kMost * kPromptToken, kMost, false);
  int64_t n = 0;
  for (int i = 0; i < 200; ++i) {
    n = std::max<int64_t>(2, speed.prompt_tokens_within(4, kMost));
    const double added = n <= 8 ? 0.007 + 0.00025 * static_cast<double>(n) : 0.002 * n;
    speed.learn(i < 100 && i % 3 == 0 ? 20 * kStep : kStep + added, n, true);
  }
  EXPECT_EQ(n, 8);
}

TEST(StepSpeed, WithoutAStepWithoutPromptsAllTokensAreTaken) {
  StepSpeed speed;
  speed.learn(kMost * kPromptToken, kMost, false);
  EXPECT_EQ(speed.prompt_tokens_within(4, kMost), kMost);
}

}  // namespace
}  // namespace limpid
