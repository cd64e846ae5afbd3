// Samples of text that a model writes during its training.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "limpid/sampler.hpp"
#include "tokenizer/tokenizer.h"

namespace limpid {

struct SampleOptions {
  std::string prompt;       // "": the text begins as a document of the data does
  TokenId first_token = 0;  // of such a document, for a tokenizer that marks no beginning
  int64_t n_tokens = 128;   // at most; fewer where the model's positions end
  float temperature = 0.8F;
  uint64_t seed = 0;
  int n_threads = 0;
};

struct TrainingSample {
  std::string prompt;  // without control tokens
  std::string text;
};

// Returns the text that the model with these weights writes after the prompt: the same text as in
// inference with the same weights, prompt, seed and temperature. When the text is longer than the
// model's positions, it goes on after the newer half of its tokens. The weights are read where they
// are, and the call does not affect the training. Throws ContextOverflowError for a prompt that is
// too long, ResourceError.
TrainingSample sample_text(const Checkpoint& checkpoint,
                           const std::shared_ptr<const Tokenizer>& tokenizer,
                           const SampleOptions& options);

}  // namespace limpid
