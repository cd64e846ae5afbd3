// Microseconds of a training step of `limpid microgpt`, by engine: processor time of this thread,
// so that other programs on the machine disturb little. The median of rounds and the best one.
//
//   microgpt_bench [ROUNDS [STEPS]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "train/microgpt/trainer.h"

namespace {

using namespace limpid::microgpt;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void measure(const char* name, const Trainer::MakeEngine& make_engine, int n_rounds, int n_steps) {
  Config config = preset("python");
  config.python_sum_order = false;
  std::vector<double> rounds;
  for (int round = 0; round < n_rounds; ++round) {
    Trainer trainer(config, Dataset::parse(names_text(), "names.txt"), make_engine);
    for (int i = 0; i < 20; ++i) trainer.step();
    const double begin = thread_seconds();
    for (int i = 0; i < n_steps; ++i) trainer.step();
    rounds.push_back((thread_seconds() - begin) / n_steps * 1e6);
  }
  std::sort(rounds.begin(), rounds.end());
  fmt::print("{:10} median {:8.2f} us a step   best {:8.2f}\n", name, rounds[rounds.size() / 2],
             rounds.front());
}

}  // namespace

int main(int argc, char** argv) {
  const int n_rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const int n_steps = argc > 2 ? std::atoi(argv[2]) : 900;
  measure("scalar", make_scalar_engine, n_rounds, n_steps);
  measure("fast f64", make_fast_engine<double>, n_rounds, n_steps);
  measure("fast f32", make_fast_engine<float>, n_rounds, n_steps);
  return 0;
}
