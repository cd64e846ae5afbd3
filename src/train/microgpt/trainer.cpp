#include "train/microgpt/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace limpid::microgpt {
namespace {

void check_run(const Config& config) {
  const auto at_least = [](std::string_view flag, int64_t value, int64_t least) {
    LIMPID_CHECK(ArgumentError, value >= least, "--{} {}: must be at least {}", flag, value, least);
  };
  at_least("num_steps", config.num_steps, 1);
  at_least("batch_size", config.batch_size, 1);
  at_least("samples", config.samples, 0);
  const auto above_zero = [](std::string_view flag, double value) {
    LIMPID_CHECK(ArgumentError, std::isfinite(value) && value > 0, "--{} {}: must be above 0", flag,
                 value);
  };
  above_zero("learning_rate", config.learning_rate);
  above_zero("temperature", config.temperature);
}

}  // namespace

Trainer::Trainer(Config config, Dataset dataset, const MakeEngine& make_engine)
    : config_(config), dataset_(std::move(dataset)), random_(config.seed) {
  check_run(config_);
  dataset_.shuffle(random_);
  alphabet_ = dataset_.alphabet(config_.period_in_alphabet);
  encode_documents();
  config_.shape.vocab_size = alphabet_.vocab_size();
  const Matrices matrices(config_.shape);
  engine_ = make_engine(
      config_, initial_weights(matrices, config_.deviation, config_.random_style, random_));
}

Trainer::Trainer(Config config, Dataset dataset, Alphabet alphabet, std::vector<double> weights,
                 const MakeEngine& make_engine)
    : config_(config),
      dataset_(std::move(dataset)),
      alphabet_(std::move(alphabet)),
      random_(config.seed) {
  check_run(config_);
  dataset_.shuffle(random_);
  encode_documents();
  config_.shape.vocab_size = alphabet_.vocab_size();
  LIMPID_CHECK(ShapeError, std::ssize(weights) == Matrices(config_.shape).n_params,
               "{} weights do not fit a model of {} parameters", weights.size(),
               Matrices(config_.shape).n_params);
  engine_ = make_engine(config_, std::move(weights));
}

void Trainer::encode_documents() {
  encoded_.resize(dataset_.documents().size());
  for (size_t i = 0; i < encoded_.size(); ++i) {
    alphabet_.encode(dataset_.documents()[i], encoded_[i]);
  }
}

// Takes the next batch_size documents in order, wrapping around at the end of the data.
double Trainer::step() {
  LIMPID_CHECK(ArgumentError, !encoded_.empty(), "there is no data to learn from");
  batch_.resize(static_cast<size_t>(config_.batch_size));
  for (size_t i = 0; i < batch_.size(); ++i) {
    const size_t at = static_cast<size_t>(step_) * batch_.size() + i;
    batch_[i] = encoded_[at % encoded_.size()];
  }
  const double loss = engine_->forward_backward(batch_);
  engine_->update(adam_step(config_, step_));
  ++step_;
  return loss;
}

// Draws a token from softmax(logits / temperature).
Token Trainer::draw(std::span<const double> logits) {
  probabilities_.assign(logits.begin(), logits.end());
  const double inverse_temperature = std::pow(config_.temperature, -1.0);
  for (double& value : probabilities_) value *= inverse_temperature;
  const double largest = *std::max_element(probabilities_.begin(), probabilities_.end());
  double total = 0;
  for (double& value : probabilities_) {
    value = std::exp(value - largest);
    total += value;
  }
  const double scale = std::pow(total, -1.0);
  for (double& value : probabilities_) value *= scale;
  if (config_.random_style == RandomStyle::kPython) {
    return static_cast<Token>(random_.choice(probabilities_));
  }
  double mass = 0;
  for (const double value : probabilities_) mass += value;
  const double mark = random_.uniform() * mass;
  double running = 0;
  for (size_t i = 0; i < probabilities_.size(); ++i) {
    running += probabilities_[i];
    if (mark <= running) return static_cast<Token>(i);
  }
  return static_cast<Token>(probabilities_.size() - 1);
}

// Starts with BOS and feeds each drawn token back, until BOS is drawn again or the context is full.
std::string Trainer::sample() {
  std::string text;
  logits_.resize(static_cast<size_t>(alphabet_.vocab_size()));
  engine_->begin_context();
  Token token = alphabet_.bos();
  for (int64_t position = 0; position < config_.shape.block_size; ++position) {
    engine_->next_logits(token, logits_);
    token = draw(logits_);
    if (token == alphabet_.bos()) break;
    text += alphabet_.decode(token);
  }
  return text;
}

}  // namespace limpid::microgpt
