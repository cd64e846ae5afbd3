// A model with the tape around its executor: losses and gradients of batches.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "model/decoder_spec.h"
#include "train/batch.h"
#include "train/parameters.h"
#include "train/tape.h"

namespace limpid {

struct TrainingModelOptions {
  std::function<bool(std::string_view name)> learns{};  // which tensors learn; empty: all
  TapeOptions tape{};
  double dropout = 0;  // probability, in [0, 1); of models with learned positions (GPT-2) only
  uint64_t seed = 0;   // of dropout
};

// Throws UnsupportedError for a model that has no dropout.
void check_dropout(const DecoderSpec& spec, double dropout);

class TrainingModel {
 public:
  // Copies the checkpoint's tensors to f32. `executor` must offer gradient ops. Throws as
  // Model::load does, UnsupportedError.
  TrainingModel(const Checkpoint& checkpoint, std::unique_ptr<Executor> executor,
                const TrainingModelOptions& options = {});

  const DecoderSpec& spec() const { return spec_; }
  // Returns the checkpoint with the present values, for export and for generation.
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  std::span<Parameter> parameters() { return parameters_; }
  std::span<const Parameter> parameters() const { return parameters_; }

  // Returns the losses of the batch's targets, in nats, in their order, without dropout. Throws
  // ArgumentError for tokens outside the vocabulary, sequences longer than the model's positions, a
  // batch without targets.
  std::span<const double> losses(const Batch& batch) { return run(batch, 0, false); }
  // The same with dropout, and adds the gradient of factor * sum(losses) to every parameter's
  // gradient. While the backward pass goes on, it calls complete(block) when the gradients of that
  // block, and of all that follows it, have their final values.
  std::span<const double> losses_and_gradients(
      const Batch& batch, float factor, const std::function<void(int64_t block)>& complete = {});
  // Returns the logits of the token that follows, [vocab_size].
  std::vector<float> next_logits(std::span<const int32_t> token_ids);
  // Returns the place of the first number that is not finite: a parameter, a value of the forward
  // pass ("ffn_residual of layer 3"), or a gradient. Empty when all are finite.
  std::string find_non_finite(const Batch& batch);
  // begin_gradients() begins new sums of gradients, finish_gradients() completes the gradients of
  // the weights that no batch used.
  void begin_gradients() { tape_.gradients().begin_gradients(); }
  void finish_gradients() { tape_.gradients().finish_gradients(); }
  void zero_gradients();
  // Call after the values have changed. Renews every copy that the executor keeps.
  void refresh() { tape_.refresh(); }

 private:
  Dropout dropout_of(const Batch& batch) const;
  std::span<const double> run(const Batch& batch, float factor, bool want_gradients);
  void check(const Batch& batch) const;
  void set_inputs(const Batch& batch);
  void keep_gradients();

  TrainingModelOptions options_;
  std::shared_ptr<Checkpoint> checkpoint_;
  DecoderSpec spec_;
  Tape tape_;
  DecoderWeights weights_;
  std::vector<Parameter> parameters_;
  KvStorage no_cache_{KvLayout{}};  // the tape attends to whole sequences
  std::vector<LossTarget> targets_;
  std::vector<double> losses_;
};

}  // namespace limpid
