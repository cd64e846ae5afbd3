// Microseconds of a training step of `limpid microgpt`, by engine: processor time of this thread,
// so that other programs on the machine disturb little. The median of rounds and the best one.
//
//   microgpt_bench [ROUNDS [STEPS]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "thread_seconds.h"
#include "train/microgpt/trainer.h"
#include "train/watch/live_run.h"
#include "train/watch/loss_curve.h"

namespace {

using namespace limpid::microgpt;
using limpid::thread_seconds;

// Microseconds of a step.
double time_steps(Trainer& trainer, int n_steps, const std::function<void(double loss)>& watch) {
  const double begin = thread_seconds();
  for (int i = 0; i < n_steps; ++i) {
    const double loss = trainer.look();
    if (watch) watch(loss);
    trainer.update();
  }
  return (thread_seconds() - begin) / n_steps * 1e6;
}

void measure(const char* name, const Trainer::MakeEngine& make_engine, int n_rounds, int n_steps) {
  Config config = preset("python");
  config.python_sum_order = false;
  std::vector<double> rounds;
  for (int round = 0; round < n_rounds; ++round) {
    Trainer trainer(config, Dataset::parse(names_text(), "names.txt"), make_engine);
    time_steps(trainer, 20, {});
    rounds.push_back(time_steps(trainer, n_steps, {}));
  }
  std::sort(rounds.begin(), rounds.end());
  fmt::print("{:10} median {:8.2f} us a step   best {:8.2f}\n", name, rounds[rounds.size() / 2],
             rounds.front());
}

// What `limpid microgpt --watch` adds to a step while nobody asks for its state.
void measure_watched(const char* name, const Trainer::MakeEngine& make_engine, int n_rounds,
                     int n_steps) {
  std::vector<double> ratios;
  Config config = preset("python");
  config.num_steps = int64_t{1} << 40;  // the learning rate stays as it is
  Trainer trainer(config, Dataset::parse(names_text(), "names.txt"), make_engine);
  limpid::LiveRun run;
  limpid::LossCurve curve;
  const auto watched = [&](double loss) {
    curve.add(loss);
    run.step([] { return std::string(); }, [] { return false; });
  };
  for (int round = 0; round < n_rounds; ++round) {
    const double alone = time_steps(trainer, n_steps, {});
    ratios.push_back(time_steps(trainer, n_steps, watched) / alone);
  }
  std::sort(ratios.begin(), ratios.end());
  fmt::print("{:10} watched by nobody: {:.4f} of a step, median of {} pairs\n", name,
             ratios[ratios.size() / 2], n_rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const int n_rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const int n_steps = argc > 2 ? std::atoi(argv[2]) : 900;
  measure("scalar", make_scalar_engine, n_rounds, n_steps);
  measure("fast f64", make_fast_engine<double>, n_rounds, n_steps);
  measure("fast f32", make_fast_engine<float>, n_rounds, n_steps);
  measure_watched("scalar", make_scalar_engine, 5 * n_rounds, n_steps);
  measure_watched("fast f32", make_fast_engine<float>, 5 * n_rounds, n_steps);
  return 0;
}
