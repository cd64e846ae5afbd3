#include "generate/step_speed.h"

#include <algorithm>
#include <utility>

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
  if (is_shared && n_prompt >= static_cast<int64_t>(n_beside_)) seconds_beside_ = seconds - own;
}

// Tokens do not cost the same, whatever their number: reading the keys of a prompt costs as much
// for 1 token as for 8, and a tile of 5 tokens costs as much as one of 8. Suppose that 4 tokens add
// 8.5 ms, 8 add 10 ms, and 10 ms are left: by the cost of each of 4, there is time for 4.7, and so
// for 4 for ever. So the number is not computed anew, but grows or shrinks by a part of what is
// missing, with its fraction: from 4.0 to 4.14 and on, until it is 5 and the cost of each is less.
int64_t StepSpeed::prompt_tokens_within(double factor, int64_t most) {
  if (step_seconds_ <= 0 || prompt_token_seconds_ <= 0) return most;
  const double spare = (factor - 1) * step_seconds_;
  if (n_beside_ == 0) n_beside_ = spare / prompt_token_seconds_;
  if (const double seconds = std::exchange(seconds_beside_, 0); seconds > 0)
    n_beside_ *= 1 + kWeight * (std::clamp(spare / seconds, 1 / kMostTimes, kMostTimes) - 1);
  n_beside_ = std::clamp(n_beside_, 1.0, static_cast<double>(most));
  return static_cast<int64_t>(n_beside_);
}

}  // namespace limpid
