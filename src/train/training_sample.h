// Samples of text that a model writes during its training.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"
#include "train/run_settings.h"

namespace limpid {

struct TrainingSample {
  std::string prompt;  // without control tokens
  std::string text;
};

// Returns the text that the model with these weights writes after settings.sample_prompt: the same
// text as in inference with the same weights, prompt, seed and temperature. With no prompt, the
// text begins as a document does: with BOS or, if the tokenizer does not add one, with
// `first_token`. When the text is longer than the model's positions, it goes on after the newer
// half of its tokens. The weights are read where they are, and the call does not affect the
// training. Throws ContextOverflowError for a prompt that is too long, ResourceError.
TrainingSample sample_text(const Checkpoint& checkpoint,
                           const std::shared_ptr<const Tokenizer>& tokenizer,
                           const RunSettings& settings, TokenId first_token, int n_threads);

}  // namespace limpid
