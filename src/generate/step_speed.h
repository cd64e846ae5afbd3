// How long steps take, learned while they run, so that prompts slow answers down by a bounded
// factor.
#pragma once

#include <cstdint>

namespace limpid {

// A chunk of a prompt shares some layers of a tick with the answers (see Scheduler). While
// something is not known yet, there is time for all.
class StepSpeed {
 public:
  explicit StepSpeed(int64_t n_layers) : n_layers_(static_cast<double>(n_layers)) {}

  // A tick without prompts took `seconds`.
  void learn_answers(double seconds);
  // In a tick with a prompt, `n_layers` layers of the answers alone took `seconds`.
  void learn_answers_beside(double seconds, int64_t n_layers);
  // `n_layers` layers took `seconds` with `n_tokens` tokens of prompts, and with the answers.
  void learn_prompts(double seconds, int64_t n_tokens, int64_t n_layers);

  // How many tokens of `n_waiting` should be the next chunk, where a tick may take `factor` times
  // as long as one without prompts: all if one tick is enough, or else as many as pass through a
  // third of the layers in a tick, or through one layer.
  double chunk_tokens(double factor, int64_t n_waiting) const;
  // How many layers of a chunk fit in such a tick.
  double layers_of_tick(double factor, int64_t n_tokens) const;

 private:
  double share_of_layers() const;

  double n_layers_;
  // Moving averages; 0: not known.
  double answer_seconds_ = 0;
  double answer_seconds_beside_ = 0;  // a prompt
  double token_layer_seconds_ = 0;    // of a prompt
};

}  // namespace limpid
