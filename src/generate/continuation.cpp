#include "generate/continuation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "generate/grammar_sampler.h"
#include "generate/logprobs.h"

namespace limpid {
namespace {

// The ids that end the text, sorted: those of the options and of the model.
std::vector<TokenId> all_stop_ids(const Tokenizer* tokenizer, const GenerationOptions& options) {
  std::vector<TokenId> ids = options.stop_ids;
  if (tokenizer != nullptr) {
    ids.insert(ids.end(), tokenizer->spec().stop_ids.begin(), tokenizer->spec().stop_ids.end());
    // Control tokens are not part of the text, so a stop string that spells one means the token.
    for (const std::string& stop : options.stop) {
      const auto id = tokenizer->find(stop);
      if (id && tokenizer->is_control(*id)) ids.push_back(*id);
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Returns `options` after checking their ranges.
const GenerationOptions& checked(const GenerationOptions& options, bool has_tokenizer) {
  LIMPID_CHECK(ArgumentError, options.n_predict >= GenerationOptions::kUntilContextIsFull,
               "[generate] n_predict is {}, must be 0 or more, -1 (until the model stops) or -2 "
               "(until the context is full)",
               options.n_predict);
  LIMPID_CHECK(ArgumentError, options.n_keep >= -1,
               "[generate] n_keep is {}, must be -1 (the prompt) or more", options.n_keep);
  LIMPID_CHECK(ArgumentError, options.n_logprobs >= -1,
               "[generate] n_logprobs is {}, must be -1 (none) or more", options.n_logprobs);
  LIMPID_CHECK(ArgumentError, has_tokenizer || options.stop.empty(),
               "[generate] stop strings need a tokenizer, and this model has none; use stop_ids");
  return options;
}

}  // namespace

Continuation::Continuation(const Engine& engine, const GenerationOptions& options)
    : options_(checked(options, engine.has_tokenizer())),
      tokenizer_(engine.has_tokenizer() ? engine.tokenizer() : nullptr),
      vocab_size_(engine.vocab_size()),
      stop_ids_(all_stop_ids(tokenizer_.get(), options)),
      chain_(options.sampler, vocab_size_, stop_ids_),
      matcher_(options.stop) {
  result_.seed = chain_.seed();
}

// Prepares the decoder. A token may end in the middle of a character, and some tokenizers drop a
// space at the start of a text, so the decoder must know what precedes the answer. A grammar
// describes all bytes of the tokens, the first space included, so the answer keeps this space.
void Continuation::begin(std::span<const TokenId> prompt) {
  history_.assign(prompt.begin(), prompt.end());
  n_prompt_ = std::ssize(history_);
  if (!tokenizer_) return;
  const auto is_text = [this](TokenId id) {
    return id < tokenizer_->vocab_size() && !tokenizer_->is_control(id);
  };
  const auto& custom = options_.sampler.custom;
  const bool has_grammar =
      std::ranges::find(custom, kGrammarSampler, &Sampler::name) != custom.end();
  const bool at_start = !has_grammar && std::ranges::none_of(prompt, is_text);
  decoder_.emplace(tokenizer_, options_.show_special, at_start);
  // The text continues the prompt, whose last character may be incomplete. Push the last tokens, at
  // most as many as a character has bytes, and discard their text.
  constexpr size_t kTail = 4;
  for (const TokenId id : prompt.last(std::min(prompt.size(), kTail))) {
    if (is_text(id)) decoder_->push(id);
  }
}

void Continuation::set_prompt(int64_t n, int64_t n_dropped_messages) {
  n_prompt_ = n;
  result_.n_dropped_messages = n_dropped_messages;
}

void Continuation::give(const std::string& text) {
  ready_ += text;
  result_.text += text;
  tell_logprobs(result_.text.size());
}

// Reports the held tokens that begin before this byte. With the stop string "STOP", the tokens
// " foo", " barST" and "OP" give the text " foo bar" and the log-probabilities of the first two.
// The tokens of one character begin together.
void Continuation::tell_logprobs(size_t n_bytes) {
  while (!held_logprobs_.empty() && held_logprobs_.front().begin < n_bytes) {
    result_.logprobs.push_back(std::move(held_logprobs_.front().logprobs));
    held_logprobs_.pop_front();
  }
}

// A stop id is not part of the result; the ids of a stop string are, but not its text. n_predict
// counts the tokens of the result.
std::optional<TokenId> Continuation::next(const StepRow& logits) {
  if (finished()) return std::nullopt;
  if (options_.n_predict == 0) {
    finish(StopReason::kLength);
    return std::nullopt;
  }
  const TokenId id = logits.best.empty() ? chain_.sample(logits.whole, history_)
                                         : chain_.sample_best(logits.best, history_);
  // A sampler of the application may have made any candidates.
  LIMPID_CHECK(ArgumentError, id >= 0 && id < vocab_size_,
               "[sampler] token id {} is not in the vocabulary [0, {})", id, vocab_size_);
  ++result_.timings.n_generated;
  if (std::ranges::binary_search(stop_ids_, id)) {
    result_.stop_id = id;
    finish(StopReason::kEndOfText);
    return std::nullopt;
  }
  result_.ids.push_back(id);
  history_.push_back(id);
  if (options_.n_logprobs >= 0) {
    held_logprobs_.push_back(
        {result_.text.size() + matcher_.held().size(),
         options_.logprobs_after_sampling
             ? candidate_logprobs(chain_.candidates(), id, options_.n_logprobs, tokenizer_.get())
             : token_logprobs(logits.whole, id, options_.n_logprobs, tokenizer_.get())});
  }
  // A padded embedding has more rows than the tokenizer has tokens; those rows have no text.
  if (decoder_ && id < tokenizer_->vocab_size()) give(matcher_.push(decoder_->push(id)));
  if (!matcher_.matched().empty()) {
    result_.stop_string = matcher_.matched();
    result_.stop_reason = StopReason::kStopString;
  } else if (std::ssize(result_.ids) == options_.n_predict) {
    finish(StopReason::kLength);
  } else if (options_.stop_at_repetition.value_or(false) && repetition_.update(result_.ids)) {
    finish(StopReason::kRepetition);
  }
  return id;
}

// Log-probabilities of the model's own distribution need its sum.
int64_t Continuation::n_best() const {
  const bool needs_all = options_.n_logprobs >= 0 && !options_.logprobs_after_sampling;
  return needs_all ? 0 : chain_.n_best();
}

void Continuation::finish(StopReason reason) {
  if (finished()) return;
  result_.stop_reason = reason;
  // An incomplete character at the end is completed when the sequence goes on. After the end of the
  // text it cannot be completed, so the decoder returns U+FFFD for it.
  if (decoder_ && reason == StopReason::kEndOfText) give(matcher_.push(decoder_->finish()));
  give(matcher_.finish());
  tell_logprobs(std::numeric_limits<size_t>::max());
}

std::string Continuation::take_text() { return std::exchange(ready_, ""); }

bool Continuation::needs_shift(int64_t n_tokens, int64_t n_ctx) {
  if (n_tokens < n_ctx) return false;
  if (options_.n_predict == GenerationOptions::kUntilContextIsFull) {
    finish(StopReason::kLength);
    return false;
  }
  n_full_ = n_tokens;
  if (options_.context_shift) return true;
  throw ContextOverflowError(
      n_tokens + 1, n_ctx,
      context_needed(n_tokens + 1, options_.n_predict < 0
                                       ? options_.n_predict
                                       : options_.n_predict - std::ssize(result_.ids)));
}

// A model that was trained with BOS before each text is much worse without it, so a shift never
// drops BOS, except in a context that holds only one token. An n_keep that leaves nothing to drop
// is lowered: an error would come only when the context is full, and the text generated until then
// would be lost.
int64_t Continuation::n_keep() const {
  constexpr int64_t kLeastMoved = 4;  // tokens that a shift may drop or move, as in llama.cpp
  const int64_t wanted = options_.n_keep < 0 ? n_prompt_ : options_.n_keep;
  const bool has_bos =
      tokenizer_ && !history_.empty() && tokenizer_->spec().bos == history_.front();
  const int64_t n_kept =
      std::max<int64_t>(std::min(wanted, n_full_ - kLeastMoved), has_bos ? 1 : 0);
  return std::min(n_kept, n_full_ - 1);
}

// Without a limit on the answer, a third of the prompt is a guess at its length.
int64_t context_needed(int64_t n_tokens, int64_t n_predict) {
  const int64_t n_more = n_predict < 0 ? (n_tokens + 2) / 3 : n_predict;
  return n_tokens + std::min(n_more, INT64_MAX - n_tokens);
}

std::vector<TokenId> shifted(std::span<const TokenId> tokens, int64_t n_keep) {
  const int64_t n_kept = std::clamp<int64_t>(n_keep, 0, std::ssize(tokens));
  const int64_t n_others = std::ssize(tokens) - n_kept;
  LIMPID_CHECK(
      ArgumentError, n_others > 0,
      "[session] nothing to drop: {} of {} tokens must be kept; lower n_keep or raise n_ctx",
      n_kept, tokens.size());
  const int64_t n_dropped = std::max<int64_t>(n_others / 2, 1);
  std::vector<TokenId> left(tokens.begin(), tokens.begin() + n_kept);
  left.insert(left.end(), tokens.begin() + n_kept + n_dropped, tokens.end());
  return left;
}

const char* to_string(StopReason reason) {
  constexpr std::array kNames = {"none",   "end_of_text", "stop_string",
                                 "length", "cancelled",   "repetition"};
  return kNames.at(static_cast<size_t>(reason));
}

}  // namespace limpid
