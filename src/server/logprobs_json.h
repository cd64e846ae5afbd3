// Log-probabilities in the shape of OpenAI's chat API.
#pragma once

#include <span>

#include "limpid/generation.hpp"
#include "server/errors.h"

namespace limpid {

// OpenAI's value for minus infinity, which JSON lacks.
inline constexpr double kLeastLogprob = -9999;
double finite_logprob(double logprob);

// [{"token": " a", "id": 253, "logprob": …, "bytes": [32, 97], "top_logprobs": [{"token": " a", …},
// …]}, …]. A token may be a part of a character, so its bytes stand beside it.
Json logprobs_to_json(std::span<const TokenLogprobs> logprobs);

// The same with probabilities, as llama-server writes those after sampling: "prob" in the place of
// "logprob", and "top_probs".
Json probabilities_to_json(std::span<const TokenLogprobs> logprobs);

}  // namespace limpid
