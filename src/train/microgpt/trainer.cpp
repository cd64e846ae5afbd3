#include "train/microgpt/trainer.h"

#include <cmath>

#include "base/check.h"
#include "train/microgpt/sampling.h"

namespace limpid::microgpt {
namespace {

void check_run(const Config& config) {
  const auto at_least = [](std::string_view name, int64_t value, int64_t least) {
    LIMPID_CHECK(ArgumentError, value >= least, "Config::{} {}: must be at least {}", name, value,
                 least);
  };
  at_least("num_steps", config.num_steps, 1);
  at_least("batch_size", config.batch_size, 1);
  constexpr int64_t kMostDocuments = int64_t{1} << 20;  // of a step
  LIMPID_CHECK(ArgumentError, config.batch_size <= kMostDocuments,
               "a batch of {} documents: must be at most {}", config.batch_size, kMostDocuments);
  at_least("samples", config.samples, 0);
  const auto above_zero = [](std::string_view name, double value) {
    LIMPID_CHECK(ArgumentError, std::isfinite(value) && value > 0, "Config::{} {}: must be above 0",
                 name, value);
  };
  above_zero("learning_rate", config.learning_rate);
  above_zero("temperature", config.temperature);
}

}  // namespace

Trainer::Trainer(Config config, Dataset dataset, const MakeEngine& make_engine,
                 const SavedModel* saved)
    : config_(config), random_(config.seed) {
  check_run(config_);
  dataset.shuffle(random_);
  if (saved != nullptr) config_.shape = saved->shape;
  alphabet_ = saved != nullptr ? saved->alphabet : dataset.alphabet(config_.period_in_alphabet);
  config_.shape.vocab_size = alphabet_.vocab_size();
  for (const std::u32string& document : dataset.documents())
    alphabet_.encode(document, encoded_.emplace_back());
  engine_ = make_engine(config_, saved != nullptr
                                     ? saved->weights
                                     : initial_weights(Matrices(config_.shape), config_.deviation,
                                                       config_.random_style, random_));
}

// Batches go through the shuffled documents in order and begin again at the end: with 5 documents
// and a batch of 2, the batches are 0 1, 2 3, 4 0, 1 2, …
double Trainer::look() {
  LIMPID_CHECK(ArgumentError, !encoded_.empty(), "no data to learn from");
  batch_.resize(static_cast<size_t>(config_.batch_size));
  for (size_t i = 0; i < batch_.size(); ++i) {
    const size_t at = static_cast<size_t>(step_) * batch_.size() + i;
    batch_[i] = encoded_[at % encoded_.size()];
  }
  return engine_->forward_backward(batch_);
}

void Trainer::update() {
  engine_->update(adam_step(config_, step_));
  ++step_;
}

std::string Trainer::sample() {
  engine_->begin_context();
  return sample_document(
      config_, alphabet_, random_,
      [this](Token token, std::span<double> logits) { engine_->next_logits(token, logits); });
}

}  // namespace limpid::microgpt
