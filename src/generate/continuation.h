// The part of generation that needs no model: from logits to tokens, to text, to the reason to
// stop.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generate/engine.h"
#include "generate/repetition.h"
#include "generate/sampler_chain.h"
#include "generate/stop_matcher.h"
#include "limpid/generation.hpp"
#include "tokenizer/tokenizer.h"

namespace limpid {

// One sequence's continuation. Whoever evaluates tokens (a Session, a batch) feeds it logits:
//   while (!continuation.finished()) {
//     const auto token = continuation.next(logits);
//     …evaluate *token, giving logits…
//   }
class Continuation {
 public:
  // Throws ArgumentError for options out of range, and for stop strings when there is no tokenizer.
  Continuation(const Engine& engine, const GenerationOptions& options);

  // The sequence so far. To be called once, before the first next().
  void begin(std::span<const TokenId> prompt);
  // The prompt has become one of `n` tokens, which lacks so many of a chat's messages.
  void set_prompt(int64_t n, int64_t n_dropped_messages);

  // Samples from `logits` [vocab_size] of the sequence's last token. Gives the token that was
  // added to the text, which is to be evaluated before the next call; nothing when there is none.
  std::optional<TokenId> next(std::span<const float> logits);
  // Ends it from outside.
  void finish(StopReason reason);
  bool finished() const { return result_.stop_reason != StopReason::kNone; }

  // Text that became ready since the last call: whole UTF-8, and no part of a stop string.
  std::string take_text();

  // Before evaluating one more token of a sequence that holds `n_tokens` of `n_ctx`: false when
  // there is room; true when the context is to be shifted. Ends the continuation, or throws
  // ContextOverflowError, as the options say.
  bool needs_shift(int64_t n_tokens, int64_t n_ctx);
  // Tokens at the front that a shift keeps: n_keep, and BOS in any case.
  int64_t n_keep() const;

  const GenerationOptions& options() const { return options_; }
  const GenerationResult& result() const { return result_; }
  GenerationTimings& timings() { return result_.timings; }

 private:
  bool is_stop(TokenId id) const;
  void give(const std::string& text);

  GenerationOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // or null
  std::vector<TokenId> stop_ids_;               // sorted
  SamplerChain chain_;
  StopMatcher matcher_;
  RepetitionDetector repetition_;
  std::optional<StreamDecoder> decoder_;
  std::vector<TokenId> history_;  // grows also where a context shift shortens the sequence
  int64_t n_prompt_ = 0;
  std::string ready_;
  GenerationResult result_;
};

// The context that holds `n_tokens` and what is to be generated after them; the number that
// ContextOverflowError::n_needed speaks of.
int64_t context_needed(int64_t n_tokens, int64_t n_predict);

// What a context shift leaves of `tokens`: the first n_keep, and the newer half of the others.
// Throws ArgumentError when there is nothing to drop.
std::vector<TokenId> shifted(std::span<const TokenId> tokens, int64_t n_keep);

}  // namespace limpid
