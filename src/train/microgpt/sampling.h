// How a document is drawn from a model's logits.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "train/microgpt/config.h"
#include "train/microgpt/dataset.h"
#include "train/microgpt/python_random.h"

namespace limpid::microgpt {

// Computes logits [vocab_size] for what follows `token`; the context grows by the token.
using NextLogits = std::function<void(Token token, std::span<double> logits)>;

// Draws a document token by token, at the temperature and in the style of `config`. Starts with BOS
// and feeds each drawn token back, until BOS is drawn again or the context, empty at first, has
// block_size tokens.
std::string sample_document(const Config& config, const Alphabet& alphabet, PythonRandom& random,
                            const NextLogits& next_logits);

}  // namespace limpid::microgpt
