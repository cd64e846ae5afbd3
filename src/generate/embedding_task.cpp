#include "generate/embedding_task.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace limpid {

std::optional<Pooling> pooling_named(std::string_view name) {
  if (name == "mean") return Pooling::kMean;
  if (name == "last") return Pooling::kLast;
  if (name == "cls") return Pooling::kFirst;
  return std::nullopt;
}

Pooling model_pooling(const Checkpoint& checkpoint) {
  const std::string key = fmt::format(
      "{}.pooling_type", checkpoint.metadata.string("general.architecture").value_or(""));
  const int64_t type = checkpoint.metadata.integer(key).value_or(0);
  if (type == 0 || type == 1) return Pooling::kMean;  // 0: none is stated
  if (type == 2) return Pooling::kFirst;
  if (type == 3) return Pooling::kLast;
  throw UnsupportedError(fmt::format("{}: {} is {}; Limpid pools by mean (1), cls (2) or last (3)",
                                     checkpoint.path, key, type));
}

EmbeddingTask::EmbeddingTask(const Engine& engine, std::vector<TokenId> tokens, Pooling pooling,
                             bool normalize, CancelToken cancel, OnEnd on_end,
                             std::shared_ptr<const AdapterMix> mix)
    : pooling_(pooling),
      normalize_(normalize),
      cancel_(std::move(cancel)),
      on_end_(std::move(on_end)) {
  LIMPID_CHECK(ArgumentError, !tokens.empty(), "[embed] the text has no tokens");
  if (std::ssize(tokens) > engine.n_ctx())
    throw ContextOverflowError(std::ssize(tokens), engine.n_ctx());
  assign_tokens(std::move(tokens));
  n_most_ = n_wanted_;
  result_ = PassResult::kHidden;
  mix_ = std::move(mix);
  if (pooling_ != Pooling::kLast) first_row_ = 0;
}

// After a preemption the tokens are evaluated again, so their rows occur twice.
void EmbeddingTask::on_row(int64_t position, const StepRow& row) {
  sum_.resize(row.whole.size());
  const bool wanted = pooling_ == Pooling::kLast ||
                      (position == next_ && (pooling_ == Pooling::kMean || position == 0));
  if (wanted) {
    for (size_t i = 0; i < row.whole.size(); ++i) sum_[i] += row.whole[i];
    next_ = position + 1;
  }
  if (position + 1 == n_wanted_) give();
}

// The mean differs from the sum by a factor, which a vector of length 1 does not show.
void EmbeddingTask::give() {
  double factor = pooling_ == Pooling::kMean ? 1.0 / static_cast<double>(n_wanted_) : 1.0;
  if (normalize_) {
    double square = 0;
    for (const double x : sum_) square += x * x;
    factor = square > 0 ? 1 / std::sqrt(square) : 0;
  }
  std::vector<float> embedding;
  embedding.reserve(sum_.size());
  for (const double x : sum_) embedding.push_back(static_cast<float>(x * factor));
  if (auto on_end = std::exchange(on_end_, nullptr)) on_end(embedding, nullptr);
}

void EmbeddingTask::on_stop(std::exception_ptr error) {
  if (auto on_end = std::exchange(on_end_, nullptr)) on_end({}, std::move(error));
}

}  // namespace limpid
