// How a continuation is made, where it stops, and what came of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "limpid/cancel.hpp"
#include "limpid/sampler.hpp"

namespace limpid {

struct GenerationOptions {
  static constexpr int64_t kUnlimited = -1;
  static constexpr int64_t kUntilContextIsFull = -2;

  // Tokens at most. kUnlimited: until the model stops; a sequence that would grow past the context
  // throws ContextOverflowError (unless context_shift). kUntilContextIsFull: ends there with
  // StopReason::kLength.
  int64_t n_predict = kUnlimited;
  SamplerOptions sampler{};
  // The text ends before the first of these; they are never given out, also when they span several
  // tokens. One that spells a control token stops at that token.
  std::vector<std::string> stop{};
  std::vector<TokenId> stop_ids{};  // besides the model's own
  // When the context is full: keep the first n_keep tokens (-1: the prompt's), drop the older half
  // of the others, and evaluate the kept ones anew at their new positions, so the result is that of
  // a fresh prompt.
  bool context_shift = false;
  int64_t n_keep = 0;
  bool show_special = false;  // control tokens as text
  // Ends with StopReason::kRepetition when the tokens have become periodic: when they end with at
  // least four repeats of a sequence of at most 256 tokens, and with at least 96 tokens of it.
  // Small models fall into such loops and do not come out again. Unset: a Chat does so, others do
  // not. (It is not a bool so that options made elsewhere keep a Chat's default.)
  std::optional<bool> stop_at_repetition{};
  // GenerationResult::logprobs tells of each token its log-probability, and those of so many of the
  // likeliest tokens in its place. -1: nothing is kept.
  int32_t n_logprobs = -1;
  CancelToken cancel{};
};

enum class StopReason : uint8_t {
  kNone,       // still running
  kEndOfText,  // one of the stop ids
  kStopString,
  kLength,  // n_predict, or the context with kUntilContextIsFull
  kCancelled,
  kRepetition,  // stop_at_repetition
};

// "end_of_text", "stop_string", "length", "cancelled", "repetition", "none".
const char* to_string(StopReason reason);

struct GenerationTimings {
  int64_t n_prompt = 0;  // prompt tokens evaluated
  int64_t n_reused = 0;  // prompt tokens found in the KV cache
  double prompt_seconds = 0;
  int64_t n_generated = 0;  // tokens sampled, the stopping one included
  double generation_seconds = 0;
};

// A token in its place of the text, and how likely the model found it there.
struct TokenLogprob {
  TokenId id = 0;
  // Its bytes, not necessarily UTF-8; a control token as it is spelled. Empty without a tokenizer.
  std::string piece;
  // Natural log-softmax (in f64) of the model's logits, before bias and samplers.
  double logprob = 0;
};

struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> best;  // n_logprobs of them, likeliest first; of equals the lowest id
};

struct GenerationResult {
  std::string text;
  std::vector<TokenId> ids;  // tokens sampled, without the stopping one
  StopReason stop_reason = StopReason::kNone;
  std::string stop_string;              // with kStopString
  std::optional<TokenId> stop_id;       // with kEndOfText
  uint64_t seed = 0;                    // the one used
  std::vector<TokenLogprobs> logprobs;  // one for each of ids, with n_logprobs
  // With ContextPolicy::kDropOldestTurns: how many of Chat::messages() the prompt lacks.
  int64_t n_dropped_messages = 0;
  GenerationTimings timings;
};

}  // namespace limpid
