// An explanation as JSON, for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "insight/contrast.h"
#include "insight/explanation.h"
#include "insight/timing_executor.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// What `to_json` makes of each item.
nlohmann::ordered_json list_of(const auto& items, const auto& to_json) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

// A token's bytes, which may be a part of a character; "#12" without a tokenizer, or for an id that
// it lacks.
std::string token_bytes(const Tokenizer* tokenizer, int32_t id);
// The same as text for people: the bytes where they are UTF-8, else with "\xe2" for each odd byte.
// Control characters stay.
std::string token_text(const Tokenizer* tokenizer, int32_t id);

// [{"id": 3, "text": "a", "p": 0.31}, …]. Here and below, a token whose bytes are not UTF-8 also
// has "bytes": [226, 130].
nlohmann::ordered_json chances_to_json(std::span<const TokenChance> chances,
                                       const Tokenizer* tokenizer);

// Everything in an explanation, under the names of its members:
//
//   {"n_prompt": 5, "n_layers": 2, "n_heads": 4, "tokens": [{"id": 17, "text": " sea"}, …],
//    "surprise_bits": [null, 7.1, …],
//    "next": [{"entropy_bits": 4.2, "likeliest": [as chances_to_json]}, …],
//    "lens": [{"layer": -1, "predictions": [as in "next"]}, …],
//    "parts": [{"position": 0, "token": {…}, "logit": 9.1, "sum": 9.1, "embedding": 0.2,
//               "norm_bias": 0, "heads": [[of each head], of each layer],
//               "attention_rest": [of each layer], "mlps": [of each layer], "rounding": 2e-7}, …],
//    "attention": [{"layer": 0, "head": 0, "habits": {"first": 0.8, …}, "first": [of each row],
//                   "strongest": [[[column, weight], …], of each row]}, …],
//    "norms": [{"layer": -1, "stream": [of each token], …}, …]}
//
// The parts of a difference of two logits have "against": {…}, the token that is subtracted.
nlohmann::ordered_json explanation_to_json(const Explanation& explanation,
                                           const Tokenizer* tokenizer);

// [{"op": "attention", "n_calls": 60, "seconds": 0.2, "weight_bytes": 0, "flops": 0}, …], each with
// "share_of_limit" where it is known; null for an op without matrices.
nlohmann::ordered_json times_to_json(std::span<const OpTime> times);

// {"first_layer": 2, "distance": [of each layer, the embedding first], "token_distance": […],
//  "divergence_bits": [of each token], "mean_divergence_bits": 0.003,
//  "surprise_bits": [of each token in the second run], "mean_surprise_bits": [of both runs],
//  "token_changes": [[{"id": 3, "text": "a", "before": 0.1, "after": 0.4}, …], of each token],
//  "changes": [those after the last token]}
// "first_layer" is null where the models differ in shape.
nlohmann::ordered_json contrast_to_json(const Contrast& contrast, const Tokenizer* tokenizer);

}  // namespace limpid
