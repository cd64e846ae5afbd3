#include "generate/step_speed.h"

#include <algorithm>
#include <limits>

namespace limpid {
namespace {

// What a token costs changes slowly, so an average follows it. A step that the system interrupted
// counts as twice the average at most: nothing is learned about ticks without prompts while a
// prompt comes in, so one such step before a prompt would otherwise spoil the bound for all of it.
constexpr double kWeight = 0.2;
constexpr double kMostTimes = 2;

void follow(double& average, double value) {
  average =
      average <= 0 ? value : average + kWeight * (std::min(value, kMostTimes * average) - average);
}

// With a smaller share, a chunk has more tokens, each of which costs less. With a larger one, the
// answers read the weights of fewer layers without a chunk that reads them too.
constexpr double kShareOfLayers = 1.0 / 3;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

}  // namespace

void StepSpeed::learn_answers(double seconds) { follow(answer_seconds_, seconds); }

void StepSpeed::learn_answers_beside(double seconds, int64_t n_layers) {
  follow(answer_layer_seconds_, seconds / static_cast<double>(n_layers));
}

void StepSpeed::learn_prompts(double seconds, int64_t n_tokens, int64_t n_layers) {
  follow(token_layer_seconds_, seconds / static_cast<double>(n_tokens * n_layers));
}

// More than usual, where the memory that a chunk needs drives the weights out of the caches.
double StepSpeed::answer_seconds_beside() const {
  return answer_layer_seconds_ > 0 ? n_layers_ * answer_layer_seconds_ : answer_seconds_;
}

double StepSpeed::chunk_tokens(double factor, int64_t n_waiting) const {
  const double tick = factor * answer_seconds_;
  const auto all = static_cast<double>(n_waiting);
  if (tick <= 0 || all * n_layers_ * token_layer_seconds_ <= tick) return all;
  const double shared = tick - (1 - kShareOfLayers) * answer_seconds_beside();
  return shared / (kShareOfLayers * n_layers_ * token_layer_seconds_);
}

// A tick of L shared layers takes
//   L * n_tokens * token_layer_seconds + (n_layers - L) * answer_layer_seconds.
double StepSpeed::layers_of_tick(double factor, int64_t n_tokens) const {
  const double tick = factor * answer_seconds_;
  const double more =
      static_cast<double>(n_tokens) * token_layer_seconds_ - answer_seconds_beside() / n_layers_;
  if (tick <= 0 || more <= 0) return kUnbounded;
  return (tick - answer_seconds_beside()) / more;
}

}  // namespace limpid
