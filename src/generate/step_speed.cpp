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

// Beside a prompt the answers take longer than usual, because its memory drives the weights out of
// the caches (1.7 to 2.0 times on an Intel Xeon), and longer where the system interrupts them. The
// two averages are learned at different times, with more or fewer answers, so the newer one
// corrects the older one if they differ by more than this.
constexpr double kMostTimesBeside = 3;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

}  // namespace

void StepSpeed::learn_answers(double seconds) {
  follow(answer_seconds_, seconds);
  answer_seconds_beside_ =
      std::clamp(answer_seconds_beside_, answer_seconds_, kMostTimesBeside * answer_seconds_);
}

void StepSpeed::learn_answers_beside(double seconds, int64_t n_layers) {
  follow(answer_seconds_beside_, seconds * n_layers_ / static_cast<double>(n_layers));
  answer_seconds_ = std::clamp(answer_seconds_, answer_seconds_beside_ / kMostTimesBeside,
                               answer_seconds_beside_);
}

void StepSpeed::learn_prompts(double seconds, int64_t n_tokens, int64_t n_layers) {
  follow(token_layer_seconds_, seconds / static_cast<double>(n_tokens * n_layers));
}

double StepSpeed::share_of_layers() const { return std::max(kShareOfLayers, 1 / n_layers_); }

double StepSpeed::chunk_tokens(double factor, int64_t n_waiting) const {
  const double tick = factor * answer_seconds_;
  const auto all = static_cast<double>(n_waiting);
  if (tick <= 0 || all * n_layers_ * token_layer_seconds_ <= tick) return all;
  const double shared = tick - (1 - share_of_layers()) * answer_seconds_beside_;
  return shared / (share_of_layers() * n_layers_ * token_layer_seconds_);
}

// A tick of L shared layers takes
//   L * n_tokens * token_layer_seconds + (1 - L / n_layers) * answer_seconds_beside.
double StepSpeed::layers_of_tick(double factor, int64_t n_tokens) const {
  const double tick = factor * answer_seconds_;
  const double more =
      static_cast<double>(n_tokens) * token_layer_seconds_ - answer_seconds_beside_ / n_layers_;
  if (tick <= 0 || more <= 0) return kUnbounded;
  return (tick - answer_seconds_beside_) / more;
}

}  // namespace limpid
