// A run of training from its settings: data, tokenizer, model, loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tokenizer/tokenizer.h"
#include "train/run_folder.h"
#include "train/trainer.h"
#include "train/training_data.h"
#include "train/training_plan.h"
#include "train/training_sample.h"

namespace limpid {

struct RunOptions : DataOptions {
  // The processes that train together. Rank 0 opens the folder, and constructs its TrainingRun
  // before the other ranks do.
  std::shared_ptr<Ranks> ranks = std::make_shared<Ranks>();
};

// The measurements of a step, with the held-out loss and a sample of the model's text if they were
// due.
struct RunReport {
  StepReport step;
  std::optional<double> val_loss;
  std::optional<TrainingSample> sample;
  double tokens_per_second = 0;
};
// Returns the plan of a run in this folder. Reads the data, but takes no memory for the model.
// Throws as TrainingRun does, but not for a plan that does not fit.
TrainingPlan plan_run(const RunFolder& folder, const RunOptions& options);
// Returns the report as a line of log.jsonl.
std::string to_json_line(const RunReport& report);

// A run in its folder. The folder's settings decide everything; a run whose folder has checkpoints
// continues from the newest one. Its losses and weights are then, bit for bit, those of a run
// without the interruption.
class TrainingRun {
 public:
  // Reads the data, plans, and builds or opens the model. Throws ArgumentError, FormatError,
  // UnsupportedError, and ResourceError for a plan that does not fit into memory.
  TrainingRun(RunFolder folder, const RunOptions& options);

  Trainer& trainer() { return *trainer_; }
  const TrainingPlan& plan() const { return plan_; }
  const RunFolder& folder() const { return folder_; }
  bool finished() const { return finished_; }

  // Returns whether any rank passes true, and so all ranks must stop. Collective, like step().
  bool stops(bool here) { return ranks_->any(here); }
  // Takes one step and logs it, with a held-out loss, a sample and a checkpoint if they are due.
  // The last step measures the finished model and changes nothing. Throws DivergedError,
  // ResourceError.
  RunReport step();
  // Writes a checkpoint and the report now, unless this step has a checkpoint. Only rank 0 writes
  // checkpoints, the report and the log.
  void save();

 private:
  // Returns whether it wrote one.
  bool save_checkpoint();

  RunFolder folder_;
  std::shared_ptr<Ranks> ranks_;
  int n_threads_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  TokenId first_token_ = 0;  // of the documents
  TrainingPlan plan_;
  std::unique_ptr<Trainer> trainer_;
  int64_t saved_at_ = -1;
  bool finished_ = false;
};

}  // namespace limpid
