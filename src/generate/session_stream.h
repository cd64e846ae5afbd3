// The state behind a Session, and the stream of text that it feeds: what a TextStream reads from.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generate/continuation.h"
#include "generate/engine.h"
#include "generate/scheduler.h"
#include "limpid/session.hpp"

namespace limpid {

// One sequence: a task of the scheduler, and the logits after the last token. The methods do what
// those of Session document. Session calls them through idle(); an open stream, which has borrowed
// the session, calls them directly.
class Session::State final : public Task, public std::enable_shared_from_this<State> {
 public:
  State(LanguageModel language_model, const SessionOptions& options);
  ~State() override;

  using LookAtLogits = std::function<void(int64_t position, std::span<const float> logits)>;

  int64_t append(std::span<const TokenId> new_tokens, const CancelToken* cancel,
                 const LookAtLogits& look = {});
  int64_t assign(std::span<const TokenId> wanted, const CancelToken* cancel);
  void truncate(int64_t n);
  int64_t shift(int64_t n_keep, const CancelToken* cancel);

  // The tokens that were evaluated.
  std::span<const TokenId> tokens() const {
    return std::span(tokens_).first(static_cast<size_t>(n_stored_));
  }
  // The last token of an answer. It follows tokens(), and is evaluated only when another token is
  // to follow it: an answer that ends saves one step.
  std::optional<TokenId> pending() const;
  void set_pending(std::optional<TokenId> token);
  // Of its logits only the `n_best` best may become known; 0: all do.
  void evaluate_pending(int64_t n_best);
  // [vocab_size]; empty without tokens. If they are unknown, or only the best are known, the last
  // token is evaluated again.
  std::span<const float> logits();
  // Best first; empty when all are known, or none.
  std::span<const Candidate> best() const { return best_; }

  // This state. Throws ArgumentError while a stream is open, and in a callback.
  State& idle();

  Engine& engine() { return *engine_of(model); }
  // Throws ArgumentError for ids outside the vocabulary, and ContextOverflowError when `new_tokens`
  // do not fit after `n_before` others. The context that the error recommends has room for
  // n_predict (as in GenerationOptions) more.
  void check_new(std::span<const TokenId> new_tokens, int64_t n_before,
                 int64_t n_predict = 0) const;

  LanguageModel model;
  int64_t n_ctx = 0;
  bool is_lent = false;  // to a stream that is open

 private:
  void on_row(int64_t position, const StepRow& row) override;
  void forget_logits();
  void on_stop(std::exception_ptr error) override { error_ = std::move(error); }
  bool is_cancelled() const override { return cancel_ != nullptr && cancel_->cancelled(); }
  // Evaluates all of tokens_, and calls `look` for those from `n_fixed` on; `n_best` as in
  // evaluate_pending. If that fails or is cancelled, the tokens from there on that were not
  // evaluated are dropped.
  void evaluate(int64_t n_fixed, const CancelToken* cancel, const LookAtLogits& look,
                int64_t n_best = 0);

  const CancelToken* cancel_ = nullptr;  // of the evaluation in progress, like the next one
  const LookAtLogits* look_ = nullptr;
  std::exception_ptr error_;
  std::vector<float> logits_;
  std::vector<Candidate> best_;
};

// The state that a session shares with its streams.
const std::shared_ptr<Session::State>& state_of(const Session& session);

// The tokens to start from.
struct Prompt {
  std::vector<TokenId> ids;
  int64_t n_dropped_messages = 0;  // messages of a chat that the prompt leaves out
};

// Called when the context is full after `n_sampled` tokens of an answer. Returns a shorter prompt
// that leaves room for them and more, or nothing.
using ShortenPrompt = std::function<std::optional<Prompt>(int64_t n_sampled)>;

// Drives a Continuation with the logits of a Session. Work is done in next(): the first call
// evaluates the prompt, and each call evaluates tokens until some text is ready.
class SessionStream {
 public:
  // Called once, when the stream ends: its text is complete, it threw, or it is destroyed.
  using OnEnd = std::function<void(const GenerationResult& result)>;

  // Replaces the session's tokens by `prompt` at the first next(); with an empty prompt, continues
  // the tokens that are there. Throws ArgumentError when the session has an open stream,
  // ContextOverflowError when the prompt does not fit.
  SessionStream(std::shared_ptr<Session::State> session, Prompt prompt,
                const GenerationOptions& options, ShortenPrompt shorten = {}, OnEnd on_end = {});
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;
  ~SessionStream() { end(); }

  std::optional<std::string_view> next();
  // Ends the stream as a CancelToken does, without calling on_end.
  void stop();
  const GenerationResult& result() const { return continuation_.result(); }

 private:
  void advance();
  void evaluate_prompt();
  void evaluate_and_sample();
  // Replaces the session's tokens by `tokens`. Returns how many were there already. Ends the
  // continuation when it is cancelled.
  int64_t assign(std::span<const TokenId> tokens);
  // Called before one more token is evaluated. When the context is full: takes a shorter prompt,
  // shifts the context, or ends.
  void make_room();
  // Ends the use of the session, so that it can be changed again.
  void end();

  std::shared_ptr<Session::State> session_;
  std::vector<TokenId> prompt_;
  ShortenPrompt shorten_;
  OnEnd on_end_;
  Continuation continuation_;
  bool begun_ = false;
  bool is_open_ = true;
  std::string piece_;
};

}  // namespace limpid
