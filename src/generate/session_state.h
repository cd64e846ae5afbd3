// The state behind a Session.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "generate/engine.h"
#include "limpid/session.hpp"
#include "model/kv_cache.h"

namespace limpid {

// One sequence: its tokens, its part of a KV cache, and the logits after the last token. The
// methods do what those of Session document. Session calls them through idle(); an open stream,
// which has borrowed the session, calls them directly.
struct Session::State {
  State(LanguageModel language_model, const SessionOptions& options);

  using LookAtLogits = std::function<void(int64_t position, std::span<const float> logits)>;

  int64_t append(std::span<const TokenId> new_tokens, const CancelToken* cancel,
                 const LookAtLogits& look = {});
  int64_t assign(std::span<const TokenId> wanted, const CancelToken* cancel);
  void truncate(int64_t n);
  int64_t shift(int64_t n_keep);
  void evaluate_pending();

  // Lends the session to a stream. While the result exists, idle() throws. Throws ArgumentError
  // when another stream has the session.
  std::shared_ptr<const void> lend();
  // This state. Throws ArgumentError while a stream is open.
  State& idle();

  Engine& engine() { return *engine_of(model); }
  // Throws ArgumentError for ids outside the vocabulary, and ContextOverflowError when `new_tokens`
  // do not fit after `n_before` others. The context that the error recommends has room for
  // n_predict (as in GenerationOptions) more.
  void check_new(std::span<const TokenId> new_tokens, int64_t n_before,
                 int64_t n_predict = 0) const;
  // Evaluates `chunk` in one step of the model, and copies the logits of `outputs` to `out`.
  void step(std::span<const TokenId> chunk, StepItem::Outputs outputs, std::vector<float>& out);

  LanguageModel model;
  int64_t n_ctx = 0;
  std::unique_ptr<KvCache> cache;
  SequenceId sequence = 0;
  std::vector<TokenId> tokens;
  // The last token of an answer. It follows `tokens`, and is evaluated only when another token is
  // to follow it: an answer that ends saves one step.
  std::optional<TokenId> pending;
  std::vector<float> logits;       // [vocab_size] after the last token; empty when unknown
  std::weak_ptr<const void> lent;  // alive while a stream is open
};

// The state that a session shares with its streams.
const std::shared_ptr<Session::State>& state_of(const Session& session);

}  // namespace limpid
