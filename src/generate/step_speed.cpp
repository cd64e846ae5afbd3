#include "generate/step_speed.h"

#include <algorithm>

namespace limpid {
namespace {

// The averages follow slowly, so that one step that the system interrupted does not matter much.
// The average of a prompt's token rises faster, because a bound depends on it.
constexpr double kSlowly = 0.1;
constexpr double kFaster = 0.4;

void follow(double& average, double value, double weight) {
  average = average <= 0 ? value : average + weight * (value - average);
}

}  // namespace

void StepSpeed::learn(double seconds, int64_t n_prompt, bool is_shared) {
  if (n_prompt == 0) return follow(step_seconds_, seconds, kSlowly);
  const double own = is_shared ? std::min(step_seconds_, seconds) : 0;
  const double each = (seconds - own) / static_cast<double>(n_prompt);
  follow(prompt_token_seconds_, each, each > prompt_token_seconds_ ? kFaster : kSlowly);
}

int64_t StepSpeed::prompt_tokens_within(double factor, int64_t most) const {
  if (prompt_token_seconds_ <= 0) return most;
  const double spare = (factor - 1) * step_seconds_ / prompt_token_seconds_;
  return static_cast<int64_t>(std::min(spare, static_cast<double>(most)));
}

}  // namespace limpid
