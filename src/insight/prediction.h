// What a row of logits says about the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

struct TokenChance {
  TokenId id = 0;
  float probability = 0;
};

// The distribution softmax(logits), in short.
struct Prediction {
  std::vector<TokenChance> likeliest;  // descending; of equal ones the smaller id comes first
  // Of the whole distribution, in bits (Shannon 1948): 0 when one token is certain,
  // log2(vocab_size) when all are equally likely.
  double entropy = 0;
  double log_sum_exp = 0;  // log sum e^logits in nats: log p(id) = logits[id] - log_sum_exp
};

// logits [vocab_size], finite. At most `n_best` tokens.
Prediction predict(std::span<const float> logits, int64_t n_best);

// How surprised a reader is by a token of this probability, in bits: -log2 p. A token of
// probability 1/2 has 1 bit, one of 1/1024 has 10.
double surprise(double log_probability);

}  // namespace limpid
