// The part of generation that needs no model: from logits to tokens, from tokens to text, and the
// decision to stop.
#pragma once

#include <deque>
#include <limits>
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

// The continuation of one sequence. Its owner (a Session's stream, a batch) evaluates tokens and
// passes the logits in:
//
//   while (!continuation.finished()) {
//     const auto token = continuation.next(logits);
//     …evaluate *token, giving logits…
//   }
//
// Each token takes this path: the sampler chain chooses an id; a stop id ends the text; the decoder
// turns ids into whole UTF-8; the stop matcher holds back text that may be the start of a stop
// string; what remains is ready for take_text().
class Continuation {
 public:
  // Throws ArgumentError for options out of range, and for stop strings without a tokenizer.
  Continuation(const Engine& engine, const GenerationOptions& options);

  // Sets the sequence so far. Must be called once, before the first next().
  void begin(std::span<const TokenId> prompt);
  // Records that the prompt now has `n` tokens, and lacks `n_dropped_messages` of a chat's
  // messages. Called again when a chat shortens its prompt in the middle of an answer.
  void set_prompt(int64_t n, int64_t n_dropped_messages);

  // Samples from the logits of the sequence's last token: all, or at least the n_best() best.
  // Returns the token that was added to the text; the caller must evaluate it before the next call.
  // Returns nothing when the text has ended.
  std::optional<TokenId> next(const StepRow& logits);
  // How many of the best logits are enough; 0: all are wanted.
  int64_t n_best() const;
  // Ends the continuation from outside.
  void finish(StopReason reason);
  bool finished() const { return result_.stop_reason != StopReason::kNone; }

  // Returns the text that became ready since the last call: whole UTF-8, without any part of a stop
  // string.
  std::string take_text();

  // Called before one more token is evaluated, for a sequence that holds `n_tokens` of `n_ctx`.
  // Returns false when there is room, and true when the caller must shift the context. Otherwise
  // ends the continuation or throws ContextOverflowError, as the options say.
  bool needs_shift(int64_t n_tokens, int64_t n_ctx);
  // The number of tokens at the front that a shift keeps: n_keep, and BOS in any case. After
  // needs_shift() has given true, the shift can always drop at least one token: where n_keep
  // exceeds the context less four tokens, it is lowered to that number, as in llama.cpp.
  int64_t n_keep() const;

  const GenerationOptions& options() const { return options_; }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // may be null
  const GenerationResult& result() const { return result_; }
  GenerationTimings& timings() { return result_.timings; }

 private:
  void give(const std::string& text);
  void tell_logprobs(size_t n_bytes);

  GenerationOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // may be null
  int64_t vocab_size_;
  std::vector<TokenId> stop_ids_;  // sorted
  SamplerChain chain_;
  StopMatcher matcher_;
  RepetitionDetector repetition_;
  std::optional<StreamDecoder> decoder_;
  std::vector<TokenId> history_;  // all tokens; a context shift does not shorten it
  int64_t n_prompt_ = 0;
  int64_t n_full_ = std::numeric_limits<int64_t>::max();  // tokens of the context, once it is full
  std::string ready_;
  // A token whose text may belong to a stop string. It is reported when a part of its text is.
  struct HeldLogprobs {
    size_t begin = 0;  // of its text, in result_.text
    TokenLogprobs logprobs;
  };
  std::deque<HeldLogprobs> held_logprobs_;
  GenerationResult result_;
};

// The size of a context that holds `n_tokens` and the tokens to be generated after them; see
// ContextOverflowError::n_needed.
int64_t context_needed(int64_t n_tokens, int64_t n_predict);

// The tokens that remain after a context shift: the first n_keep, and the newer half of the others.
// At least one is dropped. Throws ArgumentError when all of them must be kept.
std::vector<TokenId> shifted(std::span<const TokenId> tokens, int64_t n_keep);

}  // namespace limpid
