#include "generate/step_speed.h"

#include <algorithm>

namespace limpid {
namespace {

// What a token costs changes slowly, so an average follows it. A step that the system interrupted
// counts as twice the average at most: nothing is learned about steps without prompts while a
// prompt comes in, so one such step before a prompt would otherwise spoil the bound for all of it.
constexpr double kWeight = 0.2;
constexpr double kMostTimes = 2;

void follow(double& average, double value) {
  average =
      average <= 0 ? value : average + kWeight * (std::min(value, kMostTimes * average) - average);
}

}  // namespace

void StepSpeed::learn(double seconds, int64_t n_prompt, bool is_shared) {
  if (n_prompt == 0) return follow(step_seconds_, seconds);
  const double own = is_shared ? std::min(step_seconds_, seconds) : 0;
  const double each = (seconds - own) / static_cast<double>(n_prompt);
  follow(prompt_token_seconds_, each);
}

int64_t StepSpeed::prompt_tokens_within(double factor, int64_t most) const {
  if (step_seconds_ <= 0 || prompt_token_seconds_ <= 0) return most;
  const double spare = (factor - 1) * step_seconds_ / prompt_token_seconds_;
  return static_cast<int64_t>(std::min(spare, static_cast<double>(most)));
}

}  // namespace limpid
