// The output of `limpid train`: the plan before it starts, a line per report while it runs, and the
// curve of the loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "train/run_log.h"
#include "train/training_plan.h"
#include "train/training_run.h"

namespace limpid::cli {

// Lines of a label and its facts, or the same as JSON. `f32_limit` is the machine's, in operations
// a second.
std::string plan_text(const TrainingPlan& plan, double f32_limit);
Json plan_json(const TrainingPlan& plan, double f32_limit);

// Facts about a running training that its report does not have.
struct TrainingPace {
  int64_t n_steps = 0;
  double share_of_limit = 0;  // of the f32 limit that the matrix products of a step reach
  double seconds_left = 0;    // 0: not known yet
};

// "step 250 of 2000, loss 2.3100, val 2.3500, lr 1.0e-03, 41,000 tokens/s, 3 min left".
std::string step_line(const RunReport& report, const TrainingPace& pace);
// The same for one line that is drawn again and again: as many facts as fit in so many columns, the
// most important ones first. `val_loss` is the last one measured; negative: none.
std::string step_note(const RunReport& report, const TrainingPace& pace, double val_loss,
                      size_t n_columns);

// The losses over the steps, drawn with characters in lines of fewer than `n_columns`, held-out
// ones as `o`; "" where there are fewer than two losses or 30 columns. With `braille`, eight points
// in a character (U+2800 and following).
std::string loss_curve(const std::vector<LogEntry>& log, size_t n_columns, bool braille);

}  // namespace limpid::cli
