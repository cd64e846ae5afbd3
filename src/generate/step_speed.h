// How long steps take, learned while they run, so that prompts slow answers down by a bounded
// factor.
#pragma once

#include <cstdint>

namespace limpid {

class StepSpeed {
 public:
  // A step took `seconds`. `n_prompt` of its tokens were parts of prompts; `is_shared`: it had
  // tokens of answers too.
  void learn(double seconds, int64_t n_prompt, bool is_shared);

  // As many prompt tokens as make a step about `factor` times as long as one without prompts;
  // `most` of them at most, and while nothing is known. Called once before each step.
  int64_t prompt_tokens_within(double factor, int64_t most);

 private:
  // Moving averages: seconds of a step without prompts, and of each prompt token beside it.
  double step_seconds_ = 0;
  double prompt_token_seconds_ = 0;
  // The prompt tokens of a step beside answers, and what they added to the last such step.
  double n_beside_ = 0;
  double seconds_beside_ = 0;
};

}  // namespace limpid
