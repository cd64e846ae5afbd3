// What a row of logits says about the next token.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "insight/row_kernels.h"
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

// logits [vocab_size]. At most `n_best` tokens. Where a logit is NaN, probabilities are NaN too.
Prediction predict(std::span<const float> logits, int64_t n_best);

// Makes predictions from logits that come in parts (Model::read_out), while each part lies in a
// cache. The results have the bits of `predict`, in whatever order the parts come.
class LogitReader {
 public:
  explicit LogitReader(int64_t vocab_size);

  // Begins with rows of logits [n_rows, vocab_size]; their predictions will have at most n_best
  // tokens. The logits of the tokens wanted [n_rows, any number] are kept; < 0: none.
  void begin(int64_t n_rows, int64_t n_best, std::vector<int32_t> wanted = {});

  // May be called by several threads at once.
  void see(const ColumnPart& part);

  // After all parts.
  Prediction prediction(int64_t row) const;
  float wanted_logit(int64_t row, int64_t i) const {
    return wanted_logits_[static_cast<size_t>(row * n_wanted_ + i)];
  }
  float largest_logit(int64_t row) const;

 private:
  using Rankings = std::vector<Ranking>;  // of each row

  Rankings* borrow();
  void give_back(Rankings* rankings);

  int64_t vocab_size_;
  int64_t n_parts_;
  int64_t n_rows_ = 0;
  int64_t n_best_ = 0;
  int64_t n_wanted_ = 0;  // of each row
  std::vector<int32_t> wanted_;
  std::vector<float> wanted_logits_;
  std::vector<ExponentialSums> sums_;  // [n_parts, n_rows], of kPartNumbers logits each
  // A call of `see` uses one of these alone, so there are as many as calls at once.
  std::vector<std::unique_ptr<Rankings>> rankings_;
  std::vector<Rankings*> free_;
  std::mutex mutex_;  // guards rankings_ and free_
};

// How surprised a reader is by a token of this probability, in bits: -log2 p. A token of
// probability 1/2 has 1 bit, one of 1/1024 has 10.
double surprise(double log_probability);

}  // namespace limpid
