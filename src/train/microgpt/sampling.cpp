#include "train/microgpt/sampling.h"

#include <algorithm>
#include <cmath>

namespace limpid::microgpt {

DocumentSampler::DocumentSampler(const Config& config, const Alphabet& alphabet)
    : config_(config), alphabet_(alphabet), logits_(static_cast<size_t>(alphabet.vocab_size())) {}

// Draws a token from softmax(logits / temperature).
Token DocumentSampler::draw(PythonRandom& random) {
  probabilities_ = logits_;
  const double inverse_temperature = std::pow(config_.temperature, -1.0);
  for (double& value : probabilities_) value *= inverse_temperature;
  const double largest = std::ranges::max(probabilities_);
  double total = 0;
  for (double& value : probabilities_) {
    value = std::exp(value - largest);
    total += value;
  }
  const double scale = std::pow(total, -1.0);
  for (double& value : probabilities_) value *= scale;
  const bool reaching = config_.random_style != RandomStyle::kPython;
  return static_cast<Token>(random.choice(probabilities_, reaching));
}

std::string DocumentSampler::sample(PythonRandom& random, const NextLogits& next_logits) {
  std::string text;
  Token token = alphabet_.bos();
  for (int64_t position = 0; position < config_.shape.block_size; ++position) {
    next_logits(token, logits_);
    token = draw(random);
    if (token == alphabet_.bos()) break;
    text += alphabet_.decode(token);
  }
  return text;
}

}  // namespace limpid::microgpt
