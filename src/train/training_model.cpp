#include "train/training_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/philox.h"
#include "executor/executor.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {

void check_dropout(const DecoderSpec& spec, double dropout) {
  LIMPID_CHECK(UnsupportedError, dropout == 0 || spec.position == PositionKind::kLearned,
               "a {} model learns without dropout; dropout is for GPT-2 and models like it",
               spec.architecture);
}

TrainingModel::TrainingModel(const Checkpoint& checkpoint, std::unique_ptr<Executor> executor,
                             const TrainingModelOptions& options)
    : options_(options),
      checkpoint_(copy_to_f32(checkpoint)),
      spec_(read_spec(*checkpoint_)),
      tape_(std::move(executor), options.tape),
      weights_(load_weights(*checkpoint_, spec_, tape_)),
      parameters_(make_parameters(*checkpoint_)) {
  check_dropout(spec_, options.dropout);
  if (spec_.position == PositionKind::kRope)
    weights_.rope = tape_.load_rope(spec_.rope.inverse_frequencies, spec_.n_ctx_train);
  for (Parameter& parameter : parameters_) {
    parameter.learns = !options.learns || options.learns(parameter.name);
    if (parameter.learns) parameter.gradient = Tensor(DType::kF32, parameter.value->shape());
  }
  keep_gradients();
}

// A weight may be some rows of a tensor (GPT-2 keeps Q, K and V in one), so it is found by the
// address of its values.
void TrainingModel::keep_gradients() {
  for (const Tape::LoadedWeight& weight : tape_.weights()) {
    const float* values = weight.tensor.f32();
    for (Parameter& parameter : parameters_) {
      const std::span<float> all = parameter.value->f32();
      if (!parameter.learns || values < all.data() || values >= all.data() + all.size()) continue;
      const int64_t at = values - all.data();
      tape_.gradients().keep_gradient(
          weight.handle, parameter.gradient.f32().subspan(at, weight.tensor.shape.n_elements()));
      if (weight.use != WeightUse::kProjection) continue;
      const Parameter::Rows rows{at / weight.handle.cols, weight.handle.rows};
      if (std::ranges::find(parameter.projections, rows) == parameter.projections.end())
        parameter.projections.push_back(rows);
    }
  }
}

void TrainingModel::zero_gradients() {
  begin_gradients();
  finish_gradients();
}

// The key depends on the seed and on the batch's place in the run: a run that goes on, and another
// number of processes, draw the same masks.
Dropout TrainingModel::dropout_of(const Batch& batch) const {
  const auto words = philox4x32(static_cast<uint64_t>(batch.first_window), 0, options_.seed);
  return {static_cast<float>(options_.dropout), uint64_t{words[1]} << 32U | words[0]};
}

void TrainingModel::check(const Batch& batch) const {
  LIMPID_CHECK(ArgumentError, batch.n_targets() > 0, "a batch without a token to predict");
  LIMPID_CHECK(
      ArgumentError,
      std::accumulate(batch.lengths.begin(), batch.lengths.end(), int64_t{0}) == batch.n_tokens() &&
          batch.targets.size() == batch.token_ids.size(),
      "a batch of {} tokens with {} targets, whose sequences have other lengths", batch.n_tokens(),
      batch.targets.size());
  for (const int64_t length : batch.lengths) {
    LIMPID_CHECK(ArgumentError, length > 0 && length <= spec_.n_ctx_train,
                 "a sequence of {} tokens; the model has {} positions", length, spec_.n_ctx_train);
  }
  const auto known = [&](int32_t id) { return id >= 0 && id < spec_.vocab_size; };
  for (size_t t = 0; t < batch.token_ids.size(); ++t) {
    const int32_t target = batch.targets[t];
    LIMPID_CHECK(ArgumentError,
                 known(batch.token_ids[t]) && (target == Batch::kNoTarget || known(target)),
                 "token {} followed by {} is outside the vocabulary of {}", batch.token_ids[t],
                 target, spec_.vocab_size);
  }
}

// Sequences of 3 and 2 tokens become one list without padding:
//   token_ids a b c d e     positions 0 1 2 0 1     sequences 0 0 0 1 1
// Only rows with a target are outputs, so the head computes no logits that the loss does not read.
void TrainingModel::set_inputs(const Batch& batch) {
  StepInputs& inputs = tape_.inputs();
  inputs.clear();
  inputs.token_ids = batch.token_ids;
  for (size_t s = 0; s < batch.lengths.size(); ++s) {
    for (int64_t i = 0; i < batch.lengths[s]; ++i) {
      inputs.positions.push_back(static_cast<int32_t>(i));
      inputs.sequences.push_back(static_cast<int32_t>(s));
    }
  }
  for (size_t t = 0; t < batch.targets.size(); ++t) {
    if (batch.targets[t] != Batch::kNoTarget) inputs.output_rows.push_back(static_cast<int32_t>(t));
  }
}

std::span<const double> TrainingModel::run(const Batch& batch, float factor, bool want_gradients) {
  check(batch);
  set_inputs(batch);
  targets_.clear();
  for (const int32_t target : batch.targets) {
    if (target != Batch::kNoTarget) targets_.push_back({target, factor});
  }
  losses_.assign(targets_.size(), 0.0);
  tape_.set_dropout(want_gradients ? dropout_of(batch) : Dropout{});
  const ExecutorStep step(tape_);
  const Activation logits = forward(tape_, spec_, weights_, no_cache_, PassResult::kLogits, {});
  tape_.cross_entropy(logits, targets_, losses_, want_gradients);
  if (want_gradients) tape_.backward();
  return losses_;
}

std::span<const double> TrainingModel::losses_and_gradients(
    const Batch& batch, float factor, const std::function<void(int64_t block)>& complete) {
  if (complete) {
    tape_.set_backward_observer([&](Place place, int64_t layer) {
      if (place == Place::kFfnResidual) complete(layer + 1);
      if (place == Place::kEmbedding) complete(0);
    });
  }
  const std::span<const double> losses = run(batch, factor, true);
  tape_.set_backward_observer({});
  return losses;
}

std::vector<float> TrainingModel::next_logits(std::span<const int32_t> token_ids) {
  Batch batch;
  batch.token_ids.assign(token_ids.begin(), token_ids.end());
  batch.targets.assign(token_ids.size(), Batch::kNoTarget);
  if (!batch.targets.empty()) batch.targets.back() = 0;  // a row of output
  batch.lengths = {batch.n_tokens()};
  check(batch);
  set_inputs(batch);
  const ExecutorStep step(tape_);
  std::vector<float> logits(static_cast<size_t>(spec_.vocab_size));
  tape_.read(forward(tape_, spec_, weights_, no_cache_, PassResult::kLogits, {}), logits);
  return logits;
}

// A NaN spreads: after one op it is in all of its row, and after attention in all later rows. So
// the first place in the order of the computation is the cause, and the others are its effects.
// Weights come before activations and these before gradients.
std::string TrainingModel::find_non_finite(const Batch& batch) {
  const auto has_one = [](std::span<const float> values) {
    return !std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
  };
  std::string found;
  const auto report = [&](std::string place) {
    if (found.empty()) found = std::move(place);
  };
  for (const Parameter& parameter : parameters_) {
    if (has_one(parameter.value->f32())) report(parameter.name);
  }
  std::vector<float> values;
  tape_.set_observer([&](Place place, int64_t layer, const Activation& x) {
    values.resize(static_cast<size_t>(x.rows() * x.cols()));
    tape_.read(x, values);
    if (has_one(values))
      report(layer < 0 ? std::string(place_name(place))
                       : fmt::format("{} of layer {}", place_name(place), layer));
  });
  losses(batch);
  tape_.set_observer({});
  for (const Parameter& parameter : parameters_) {
    if (has_one(parameter.gradient.f32())) report("the gradient of " + parameter.name);
  }
  return found;
}

}  // namespace limpid
