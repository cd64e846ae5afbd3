// How likely the model found a token in its place.
#pragma once

#include <span>

#include "limpid/generation.hpp"
#include "tokenizer/tokenizer.h"

namespace limpid {

// Of `chosen` and of the `n_best` likeliest tokens, from logits [vocab_size]; sums in f64.
// `tokenizer` may be null, or know fewer tokens than there are logits: pieces are then empty.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, int64_t n_best,
                             const Tokenizer* tokenizer);

}  // namespace limpid
