#include "train/microgpt/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace limpid::microgpt {
namespace {

// softmax(logits / temperature), in place.
void to_probabilities(std::vector<double>& logits, double temperature) {
  const double inverse_temperature = std::pow(temperature, -1.0);
  for (double& value : logits) value *= inverse_temperature;
  const double largest = std::ranges::max(logits);
  double total = 0;
  for (double& value : logits) {
    value = std::exp(value - largest);
    total += value;
  }
  const double scale = std::pow(total, -1.0);
  for (double& value : logits) value *= scale;
}

}  // namespace

std::string sample_document(const Config& config, const Alphabet& alphabet, PythonRandom& random,
                            const NextLogits& next_logits) {
  const bool reaching = config.random_style != RandomStyle::kPython;
  std::vector<double> numbers(static_cast<size_t>(alphabet.vocab_size()));
  std::string text;
  Token token = alphabet.bos();
  for (int64_t position = 0; position < config.shape.block_size; ++position) {
    next_logits(token, numbers);
    to_probabilities(numbers, config.temperature);
    token = static_cast<Token>(random.choice(numbers, reaching));
    if (token == alphabet.bos()) break;
    text += alphabet.decode(token);
  }
  return text;
}

}  // namespace limpid::microgpt
