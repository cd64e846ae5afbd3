// Log-probabilities in the shape of OpenAI's chat API.
#pragma once

#include <span>

#include "limpid/generation.hpp"
#include "server/errors.h"

namespace limpid {

// OpenAI writes -9999 for minus infinity, which JSON lacks.
double finite_logprob(double logprob);

// [{"token": " a", "id": 253, "logprob": …, "bytes": [32, 97], "top_logprobs": [{"token": " a", …},
// …]}, …]. A token may be a part of a character, so its bytes stand beside it.
// With `as_probabilities` as llama-server writes those after sampling: "prob" in the place of
// "logprob", and "top_probs".
Json logprobs_to_json(std::span<const TokenLogprobs> logprobs, bool as_probabilities = false);

}  // namespace limpid
