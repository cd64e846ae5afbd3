// The loop of training: batches, gradients, updates, held-out losses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "limpid/error.hpp"
#include "train/gradient_sum.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"
#include "train/ranks.h"
#include "train/schedule.h"
#include "train/token_documents.h"
#include "train/training_model.h"

namespace limpid {

// Thrown when the loss or a gradient is not finite. The message names the step and the first value
// that was not finite.
class DivergedError : public Error {
 public:
  using Error::Error;
};

struct TrainingOptions {
  int64_t batch_size = 12;  // windows of a micro-batch
  int64_t seq_len = 64;
  int64_t grad_accum = 1;  // micro-batches of a step, on all ranks together
  uint64_t seed = 1337;
  Schedule schedule;
  OptimizerOptions optimizer;
  TrainingModelOptions model;
  int64_t eval_windows = 0;  // of the held-out data; 0: all of them
  int n_threads = 0;
  std::shared_ptr<Ranks> ranks = std::make_shared<Ranks>();  // that share the micro-batches
};

// What one step measured, before its update: the report of step s is of the model after s steps, so
// step 0 is of the model that training began with.
struct StepReport {
  int64_t step = 0;
  double loss = 0;       // mean over the step's targets, nats
  double lr = 0;         // of the update that follows
  double grad_norm = 0;  // before clipping
  int64_t n_tokens = 0;  // of all steps so far, this one included
  double loss_scale = 1;
  bool skipped = false;  // a gradient was beyond f16, so nothing was updated (loss_scale.h)
};

class Trainer {
 public:
  // `held_out` may have no tokens, but if it has windows, one of them must have a target. Throws as
  // TrainingModel and BatchSampler do.
  Trainer(const Checkpoint& checkpoint, std::unique_ptr<Executor> executor,
          const TrainingOptions& options, DocumentView documents, DocumentView held_out);

  // Computes losses and gradients of the next micro-batches. All ranks have the same results.
  // Throws DivergedError. update() completes the step. Between the two, the trainer still has the
  // state before the step: a checkpoint that is saved there is known to have a finite loss, and a
  // run that goes on from it measures the step again.
  StepReport measure();
  // Changes the weights by the gradients that measure() left, unless a gradient is beyond f16.
  // `measured` is what measure() returned.
  void update(const StepReport& measured);
  // Returns the number of steps so far. A step whose update was skipped counts too.
  int64_t n_updates() const { return optimizer_.n_steps(); }
  int64_t n_tokens_seen() const { return n_tokens_; }
  bool has_held_out() const { return held_out_.n_tokens() > options_.seq_len; }
  // Returns the mean loss over held-out windows, in nats.
  double held_out_loss();

  TrainingModel& model() { return model_; }

  // Everything that a step depends on, besides the weights and the data: `save_state` writes one
  // file, `load_state` reads it. Throws FormatError when it is damaged or belongs to another model,
  // ArgumentError when it belongs to other data.
  void save_state(const std::string& path);
  void load_state(const std::string& path);

 private:
  Batch held_out_batch(int64_t i) const;
  int64_t n_held_out_windows() const;
  int64_t n_held_out_batches() const;
  Batch batch_at(int64_t position);
  std::vector<double> losses_of(std::span<const int64_t> positions, float factor);
  // Identifies what a state belongs to.
  struct Digest {
    const char* key;  // in the file of the state
    std::string digest;
    const char* problem;  // of a file with another digest
  };
  const std::vector<Digest>& digests();
  [[noreturn]] void fail_diverged(const Batch& batch, double loss, double norm);

  TrainingOptions options_;
  DocumentView documents_;
  DocumentView held_out_;
  TrainingModel model_;
  BatchSampler sampler_;
  std::optional<BatchSampler> held_out_sampler_;
  ThreadPool pool_;
  Optimizer optimizer_;
  GradientSum gradient_sum_;
  LossScale loss_scale_;
  std::vector<Digest> digests_;  // once they were needed
  int64_t n_tokens_ = 0;
  int64_t n_held_out_targets_ = 0;
  int64_t next_position_ = 0;  // of the sampler, after the batches that were measured
};

}  // namespace limpid
