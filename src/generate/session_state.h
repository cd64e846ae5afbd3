// What a Session is made of.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "generate/engine.h"
#include "limpid/session.hpp"
#include "model/kv_cache.h"

namespace limpid {

struct Session::State {
  State(LanguageModel language_model, const SessionOptions& options);

  int64_t append(std::span<const TokenId> new_tokens, const CancelToken* cancel);
  void append(std::span<const TokenId> new_tokens,
              const std::function<void(int64_t position, std::span<const float> logits)>& look);
  int64_t assign(std::span<const TokenId> wanted, const CancelToken* cancel);
  void truncate(int64_t n);
  int64_t shift(int64_t n_keep);
  void evaluate_pending();

  // For a stream. As long as the result exists, check_idle throws. Throws ArgumentError itself when
  // another stream has one.
  std::shared_ptr<const void> lend();
  // Throws ArgumentError while a stream is open.
  void check_idle() const;

  Engine& engine() { return *engine_of(model); }
  // Throws ArgumentError for ids outside the vocabulary; ContextOverflowError when `new_tokens`
  // after `n_before` others do not fit, its advice counting n_predict (as in GenerationOptions)
  // more.
  void check_new(std::span<const TokenId> new_tokens, int64_t n_before,
                 int64_t n_predict = 0) const;
  // One step: logits of the wanted outputs go to `out`.
  void step(std::span<const TokenId> chunk, bool all_outputs, bool last_output,
            std::vector<float>& out);

  LanguageModel model;
  int64_t n_ctx = 0;
  std::unique_ptr<KvCache> cache;
  SequenceId sequence = 0;
  std::vector<TokenId> tokens;
  // The last token that an answer gave out. It follows `tokens` and is evaluated when something is
  // to follow it, so an answer's last step is not wasted where nothing does.
  std::optional<TokenId> pending;
  std::vector<float> logits;       // [vocab_size] after the last token; empty when unknown
  std::weak_ptr<const void> lent;  // alive while a stream is open
};

// The state that a session shares with its streams.
const std::shared_ptr<Session::State>& state_of(const Session& session);

}  // namespace limpid
