#include "generate/generation_task.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "generate/logprobs.h"

namespace limpid {

GenerationTask::GenerationTask(const Engine& engine, std::vector<TokenId> prompt,
                               const GenerationOptions& options, int64_t n_ctx, Listener listener,
                               std::shared_ptr<const AdapterMix> mix)
    : continuation_(engine, options),
      n_ctx_(std::min(n_ctx, engine.n_ctx())),
      n_prompt_(std::ssize(prompt)),
      listener_(std::move(listener)) {
  LIMPID_CHECK(ArgumentError, n_prompt_ > 0, "[generate] the prompt has no tokens");
  if (n_prompt_ > n_ctx_)
    throw ContextOverflowError(n_prompt_, n_ctx_, context_needed(n_prompt_, options.n_predict));
  continuation_.begin(prompt);
  assign_tokens(std::move(prompt));
  const int64_t n_free = n_ctx_ - n_prompt_;
  n_most_ = n_prompt_ + (options.n_predict < 0 ? n_free : std::min(options.n_predict, n_free));
  mix_ = std::move(mix);
  if (listener_.on_prompt_token) {
    first_row_ = 0;
  } else {
    n_best_ = continuation_.n_best();
  }
}

// The time in the queue does not count.
void GenerationTask::on_start() {
  since_measured_ = {};
  if (listener_.on_start) listener_.on_start();
  on_progress();
}

void GenerationTask::on_progress() {
  if (listener_.on_prompt && !answering_) listener_.on_prompt(n_stored_, n_adopted_);
}

void GenerationTask::measure() {
  auto& timings = continuation_.timings();
  (answering_ ? timings.generation_seconds : timings.prompt_seconds) +=
      std::exchange(since_measured_, {}).seconds();
  if (!std::exchange(answering_, true)) {
    timings.n_reused = n_adopted_;
    timings.n_prompt = n_stored_ - n_adopted_;
  }
}

// The logits at a position predict the token after it. After a preemption the prompt is evaluated
// again, so its rows occur twice.
void GenerationTask::tell_prompt(int64_t position, std::span<const float> logits) {
  const Tokenizer* const tokenizer = continuation_.tokenizer();
  if (std::exchange(n_prompt_told_, std::max<int64_t>(n_prompt_told_, 1)) == 0) {
    TokenLogprobs first = token_logprobs(logits, tokens_[0], 0, tokenizer);
    first.chosen.logprob = std::numeric_limits<double>::quiet_NaN();
    listener_.on_prompt_token(first);
  }
  if (position + 1 != n_prompt_told_ || n_prompt_told_ == n_prompt_) return;
  listener_.on_prompt_token(token_logprobs(logits, tokens_[static_cast<size_t>(n_prompt_told_)],
                                           std::max(continuation_.options().n_logprobs, 0),
                                           tokenizer));
  ++n_prompt_told_;
}

void GenerationTask::on_row(int64_t position, const StepRow& logits) {
  if (first_row_ == 0) tell_prompt(position, logits.whole);
  if (position + 1 < n_wanted_) return;
  first_row_ = kNoRows;
  n_best_ = continuation_.n_best();
  on_progress();
  measure();
  const std::optional<TokenId> token = continuation_.next(logits);
  if (token && !continuation_.finished()) extend(*token);
  give_text();
  if (continuation_.finished()) end(nullptr);
}

// The token is evaluated in the next tick. In a full context, the tokens move up first.
void GenerationTask::extend(TokenId token) {
  if (continuation_.needs_shift(std::ssize(tokens_), n_ctx_)) {
    tokens_ = shifted(tokens_, continuation_.n_keep());
    n_stored_ = std::clamp<int64_t>(continuation_.n_keep(), 0, std::ssize(tokens_));
  }
  if (continuation_.finished()) return;
  tokens_.push_back(token);
  n_wanted_ = std::ssize(tokens_);
}

void GenerationTask::give_text() {
  const std::string piece = continuation_.take_text();
  if (listener_.on_token) listener_.on_token(piece, continuation_.result());
}

void GenerationTask::on_stop(std::exception_ptr error) {
  if (!error) {
    try {
      continuation_.finish(StopReason::kCancelled);
      give_text();
    } catch (...) {
      error = std::current_exception();
    }
  }
  end(std::move(error));
}

void GenerationTask::end(std::exception_ptr error) {
  n_wanted_ = n_stored_;
  if (auto on_end = std::exchange(listener_.on_end, nullptr)) on_end(result(), std::move(error));
}

}  // namespace limpid
