// The plan of a run of training: how much memory, how many steps and how many operations it will
// need.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"
#include "train/trainer.h"

namespace limpid {

// Sizes are in bytes.
struct TrainingPlan {
  uint64_t weights = 0;      // f32, of every tensor; and the copy of matrices in 16 bits
  uint64_t gradients = 0;    // of those that learn, and their sums
  uint64_t moments = 0;      // the optimizer's running means
  uint64_t activations = 0;  // the most that a step holds: what the tape keeps, and what is at work
  uint64_t data = 0;         // the tokens; of dialogues, also which of them are learned
  int64_t n_processes = 1;   // processes on this machine; each needs all of the above
  uint64_t available = 0;    // free now, by the system or the control group; 0: unknown

  int64_t n_parameters = 0;
  int64_t n_learning = 0;  // of them
  int64_t n_tokens = 0;    // to learn from
  int64_t n_held_out = 0;  // tokens
  int64_t tokens_per_step = 0;
  int64_t tokens_per_epoch = 0;  // in whole sequences, each with a target for its last token
  int64_t steps_per_epoch = 0;   // rounded up
  int64_t n_steps = 0;           // updates of the whole run
  int64_t n_done = 0;            // of them, before the run goes on
  // The operations of the matrix products of one step, forward and backward; a multiplication and
  // an addition count as two. 6 x parameters x tokens where all of a model learns. The products of
  // queries, keys and values within attention are not counted.
  double operations_per_step = 0;

  uint64_t total() const { return weights + gradients + moments + activations + data; }
};

// Returns the plan for a model with these names and shapes (no data is read). Throws the errors of
// read_spec, ResourceError for sizes beyond 64 bits.
TrainingPlan make_training_plan(const Checkpoint& shapes, const TrainingOptions& options,
                                const DocumentView& documents, const DocumentView& held_out);

// Throws ResourceError when the plan does not fit into the memory that is available. The message
// has the numbers and says what to reduce.
void check_training_plan(const TrainingPlan& plan);

}  // namespace limpid
