#include "insight/prediction.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/divide_up.h"

namespace limpid {

static_assert(kPartColumns == kPartNumbers);

LogitReader::LogitReader(int64_t vocab_size)
    : vocab_size_(vocab_size), n_parts_(divide_up(vocab_size, kPartNumbers)) {}

void LogitReader::begin(int64_t n_rows, int64_t n_best, std::vector<int32_t> wanted) {
  n_rows_ = n_rows;
  n_best_ = std::min(n_best, vocab_size_);
  wanted_ = std::move(wanted);
  n_wanted_ = n_rows > 0 ? std::ssize(wanted_) / n_rows : 0;
  wanted_logits_.assign(wanted_.size(), 0);
  sums_.resize(size_of(n_rows * n_parts_));  // each is overwritten
  free_.clear();
  for (const auto& rankings : rankings_) {
    rankings->resize(size_of(n_rows), Ranking(n_best_));
    for (Ranking& ranking : *rankings) ranking.begin(n_best_);
    free_.push_back(rankings.get());
  }
}

LogitReader::Rankings* LogitReader::borrow() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) {
    rankings_.push_back(std::make_unique<Rankings>(size_of(n_rows_), Ranking(n_best_)));
    return rankings_.back().get();
  }
  Rankings* rankings = free_.back();
  free_.pop_back();
  return rankings;
}

void LogitReader::give_back(Rankings* rankings) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(rankings);
}

// A part may have many times kPartNumbers columns. The sums of each kPartNumbers are kept apart, so
// that their order of addition does not depend on the parts.
void LogitReader::see(const ColumnPart& part) {
  Rankings& rankings = *borrow();
  const RowKernels& kernels = row_kernels();
  for (int64_t row = 0; row < n_rows_; ++row) {
    const float* logits = part.values + row * part.stride;
    Ranking& ranking = rankings[size_of(row)];
    for (int64_t begin = part.begin; begin < part.end; begin += kPartNumbers) {
      const int64_t n = std::min(kPartNumbers, part.end - begin);
      const float* x = logits + (begin - part.begin);
      ExponentialSums& sums = sums_[size_of(begin / kPartNumbers * n_rows_ + row)];
      sums = kernels.exponential_sums(x, n);
      if (!(sums.largest < ranking.floor())) ranking.offer_all(x, n, begin);
    }
    for (auto i = size_of(row * n_wanted_); i < size_of((row + 1) * n_wanted_); ++i) {
      if (part.begin <= wanted_[i] && wanted_[i] < part.end)
        wanted_logits_[i] = logits[wanted_[i] - part.begin];
    }
  }
  give_back(&rankings);
}

// With m the largest logit, e_i = e^(l_i - m) and Z = sum e_i, the entropy in nats is
//   - sum p_i log p_i = - sum (e_i / Z) (l_i - m - log Z) = log Z - sum e_i (l_i - m) / Z
// so one pass over the logits gives both sums.
Prediction LogitReader::prediction(int64_t row) const {
  const auto [largest, sum, weighted] =
      row_kernels().join_sums(&sums_[size_of(row)], n_parts_, n_rows_);
  Ranking best(n_best_);
  for (const auto& rankings : rankings_) {
    for (const auto& [logit, id] : (*rankings)[size_of(row)].kept()) best.offer(logit, id);
  }
  Prediction prediction;
  for (const auto& [logit, id] : best.kept()) {
    const double e = std::exp(static_cast<double>(logit) - static_cast<double>(largest));
    prediction.likeliest.push_back({static_cast<TokenId>(id), static_cast<float>(e / sum)});
  }
  const double entropy = (std::log(sum) - weighted / sum) / std::numbers::ln2;
  prediction.entropy = entropy < 0 ? 0 : entropy;  // by rounding
  prediction.log_sum_exp = static_cast<double>(largest) + std::log(sum);
  return prediction;
}

float LogitReader::largest_logit(int64_t row) const {
  return row_kernels().join_sums(&sums_[size_of(row)], n_parts_, n_rows_).largest;
}

Prediction predict(std::span<const float> logits, int64_t n_best) {
  LogitReader reader(std::ssize(logits));
  reader.begin(1, n_best);
  reader.see({0, std::ssize(logits), logits.data(), std::ssize(logits)});
  return reader.prediction(0);
}

double surprise(double log_probability) { return -log_probability / std::numbers::ln2; }

}  // namespace limpid
