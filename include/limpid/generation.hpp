// Options and results of a continuation: how tokens are chosen, when the text ends, and the text
// itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "limpid/cancel.hpp"
#include "limpid/sampler.hpp"

namespace limpid {

// How one continuation is generated. The defaults generate until the model stops.
struct GenerationOptions {
  static constexpr int64_t kUnlimited = -1;
  static constexpr int64_t kUntilContextIsFull = -2;

  // The most tokens to generate. kUnlimited: until the model stops; a sequence that would grow
  // beyond the context throws ContextOverflowError (unless context_shift is set).
  // kUntilContextIsFull: as kUnlimited, but ends there with StopReason::kLength.
  int64_t n_predict = kUnlimited;
  SamplerOptions sampler{};
  // The text ends before the string that is complete first, or the longest of those. They never
  // appear in the text, even when one spans several tokens. A stop string that spells a control
  // token stops at that token. Empty strings are errors, and strings that begin inside a character.
  std::vector<std::string> stop{};
  std::vector<TokenId> stop_ids{};  // in addition to the model's own
  // When the context is full: keep the first n_keep tokens (-1: the prompt's), but at most the
  // context less four, and BOS in any case; drop the older half of the others, and evaluate the
  // remaining ones again at their new positions. The result is that of a fresh prompt.
  bool context_shift = false;
  int64_t n_keep = 0;
  bool show_special = false;  // include control tokens in the text
  // Ends with StopReason::kRepetition when the tokens have become periodic: when they end with at
  // least four repeats of a sequence of at most 256 tokens, and with at least 96 tokens of it.
  // Small models fall into such loops and do not leave them. Unset: true in a Chat, false
  // elsewhere. (The type is not bool so that options created elsewhere keep a Chat's default.)
  std::optional<bool> stop_at_repetition{};
  // For each token, GenerationResult::logprobs gets its log-probability and those of this many of
  // the most likely tokens in its place. -1: none.
  int32_t n_logprobs = -1;
  // If true, the log-probabilities are those of the candidates that remain after the samplers,
  // among these candidates alone.
  bool logprobs_after_sampling = false;
  CancelToken cancel{};
};

// Why a continuation ended.
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

// How much work a continuation was, and how long it took.
struct GenerationTimings {
  int64_t n_prompt = 0;  // prompt tokens evaluated
  int64_t n_reused = 0;  // prompt tokens found in the KV cache
  double prompt_seconds = 0;
  int64_t n_generated = 0;  // tokens sampled, the stopping one included
  double generation_seconds = 0;
};

// A token at its place in the text, and how likely the model found it there.
struct TokenLogprob {
  TokenId id = 0;
  // The token's bytes, not necessarily UTF-8; a control token as it is spelled. Empty without a
  // tokenizer.
  std::string piece;
  // Natural log-softmax (in f64) of the model's logits, before bias and samplers unless
  // GenerationOptions::logprobs_after_sampling is set.
  double logprob = 0;
};

// The chosen token, and the most likely ones in its place.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> best;  // the n_logprobs most likely; equal ones by lowest id
};

// A continuation: complete when its stream has ended, partial in TextStream::so_far().
struct GenerationResult {
  std::string text;
  std::vector<TokenId> ids;  // tokens sampled, without the stopping one
  StopReason stop_reason = StopReason::kNone;
  std::string stop_string;         // set with kStopString
  std::optional<TokenId> stop_id;  // set with kEndOfText
  uint64_t seed = 0;               // the seed that was used
  // One for each of ids, if n_logprobs asks for them; but none for the last ids when all of their
  // text belongs to the stop string.
  std::vector<TokenLogprobs> logprobs;
  // How many of Chat::messages() the prompt lacks, with ContextPolicy::kDropOldestTurns.
  int64_t n_dropped_messages = 0;
  GenerationTimings timings;
};

}  // namespace limpid
