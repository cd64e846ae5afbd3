// Losses and gradients of tiny models, which tests compare between executors.
#pragma once

#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "model/tiny_checkpoint.h"
#include "train/training_model.h"

namespace limpid::testing {

// Three sequences, of 5, `longest` and 1 tokens; some tokens have no target.
inline Batch ragged_batch(int64_t vocab_size, int64_t longest) {
  Batch batch;
  for (const int64_t length : {int64_t{5}, longest, int64_t{1}}) {
    batch.lengths.push_back(length);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t t = batch.n_tokens();
      batch.token_ids.push_back(static_cast<int32_t>((t * t + 3 * t) % vocab_size));
      batch.targets.push_back(t % 7 == 3 ? Batch::kNoTarget
                                         : static_cast<int32_t>((t * 5 + 1) % vocab_size));
    }
  }
  return batch;
}

inline double total(std::span<const double> losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

// The losses of a batch, and all gradients, one parameter after another.
struct ModelGradients {
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  bool operator==(const ModelGradients&) const = default;
};

inline ModelGradients gradients_of(const TinyShape& shape, std::unique_ptr<Executor> executor,
                                   const TrainingModelOptions& options, const Batch& batch) {
  TrainingModel model(*tiny_checkpoint(shape), std::move(executor), options);
  const auto losses = model.losses_and_gradients(batch, 0.01F);
  ModelGradients result;
  result.losses.assign(losses.begin(), losses.end());
  for (const Parameter& p : model.parameters())
    result.gradients.emplace_back(p.gradient.f32().begin(), p.gradient.f32().end());
  return result;
}

}  // namespace limpid::testing
