// A training run: it reads data, reports losses, and samples new names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/microgpt/engine.h"
#include "train/microgpt/model_file.h"

namespace limpid::microgpt {

// Runs an engine on a dataset: shuffled documents in batches, one Adam step per batch.
class Trainer {
 public:
  using MakeEngine = std::function<std::unique_ptr<Engine>(const Config& config,
                                                           const std::vector<double>& weights)>;

  // Shuffles the data and then draws the weights, both from the seed. `config.shape` gets its
  // vocabulary size from the data. With `saved`, goes on with its shape, alphabet and weights.
  // Throws ArgumentError.
  Trainer(Config config, Dataset dataset, const MakeEngine& make_engine,
          const SavedModel* saved = nullptr);

  const Config& config() const { return config_; }
  const Alphabet& alphabet() const { return alphabet_; }
  int64_t n_documents() const { return static_cast<int64_t>(encoded_.size()); }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }

  // Computes the loss and the gradients of the next batch_size documents, starting over at the end
  // of the data, and updates nothing.
  double look();
  // Updates the weights by the gradients of look(), which ends the step.
  void update();
  int64_t steps_done() const { return step_; }
  // The documents of the last look(), as tokens.
  const std::vector<std::vector<Token>>& batch() const { return batch_; }
  // Replaces config().learning_rate, from which the rate of a step follows.
  void set_learning_rate(double rate) { config_.learning_rate = rate; }

  // Samples a document token by token at config().temperature, up to block_size characters.
  std::string sample();

 private:
  Config config_;
  Alphabet alphabet_;
  PythonRandom random_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::vector<Token>> encoded_;  // the documents
  std::vector<std::vector<Token>> batch_;
  int64_t step_ = 0;
};

}  // namespace limpid::microgpt
