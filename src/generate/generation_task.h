// A prompt and its continuation, as a task of the scheduler: what a batch and a server submit.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/stopwatch.h"
#include "generate/continuation.h"
#include "generate/scheduler.h"

namespace limpid {

class GenerationTask final : public Task {
 public:
  // Called on the thread that ticks; what they throw ends the task.
  struct Listener {
    // The task has left the queue. Called again after a preemption.
    std::function<void()> on_start{};
    // Called once before the first step, then after each step of the prompt: `n_done` tokens of the
    // prompt are evaluated, of which `n_found` were in the KV cache.
    std::function<void(int64_t n_done, int64_t n_found)> on_prompt{};
    // Called for each token of the prompt, once and in order, before any call about the answer. If
    // it is set, the whole prompt is evaluated, even if the cache holds parts of it. The
    // log-probability of the first token is NaN, because no logits predict it.
    std::function<void(const TokenLogprobs& token)> on_prompt_token{};
    // After each token. `piece` is the text that became ready: whole UTF-8, often one word,
    // sometimes empty.
    std::function<void(std::string_view piece, const GenerationResult& so_far)> on_token{};
    // Once, after everything else. `error` is null when the continuation ended by itself or was
    // cancelled.
    std::function<void(const GenerationResult& result, std::exception_ptr error)> on_end{};
  };

  // `prompt` has at least one token. `n_ctx`: most tokens of the sequence. `mix` (may be null): of
  // the engine's adapters. Throws ContextOverflowError, and ArgumentError for options out of range.
  GenerationTask(const Engine& engine, std::vector<TokenId> prompt,
                 const GenerationOptions& options, int64_t n_ctx, Listener listener,
                 std::shared_ptr<const AdapterMix> mix = nullptr);

  const GenerationResult& result() const { return continuation_.result(); }

 private:
  void on_start() override;
  void on_progress() override;
  void on_row(int64_t position, const StepRow& logits) override;
  void on_stop(std::exception_ptr error) override;
  bool is_cancelled() const override { return continuation_.options().cancel.cancelled(); }
  void tell_prompt(int64_t position, std::span<const float> logits);
  void extend(TokenId token);
  void measure();
  void give_text();
  void end(std::exception_ptr error);

  Continuation continuation_;
  int64_t n_ctx_;
  int64_t n_prompt_;
  int64_t n_prompt_told_ = 0;  // tokens of the prompt, to on_prompt_token
  Listener listener_;
  bool answering_ = false;
  Stopwatch since_measured_;
};

}  // namespace limpid
