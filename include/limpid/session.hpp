// One sequence of tokens: evaluate tokens, read logits, continue.
//
//   limpid::Session session(model);
//   session.append(model.encode("Once upon a time"));
//   for (std::string_view piece : session.generate()) std::cout << piece;
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "limpid/cancel.hpp"
#include "limpid/generation.hpp"
#include "limpid/model.hpp"
#include "limpid/text_stream.hpp"

namespace limpid {

struct SessionOptions {
  int64_t n_ctx = 0;  // most tokens of the sequence, up to the model's n_ctx; 0: n_ctx
};

// While a stream of generate() is open (it has neither ended nor been dropped), methods that change
// the session throw ArgumentError; tokens() and logits() may be read between two pieces. A
// moved-from session may only be assigned to or destroyed.
class Session {
 public:
  // Makes room in the model's KV cache. Throws ResourceError, ArgumentError.
  explicit Session(LanguageModel model, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const LanguageModel& model() const;
  int64_t n_ctx() const;
  // The tokens whose keys and values are stored. The last token that generate() sampled is missing
  // until another token follows it. append() and generate() evaluate it first; assign(), and
  // truncate() to these tokens or fewer, forget it.
  std::span<const TokenId> tokens() const;

  // Evaluates `tokens` after those that are there, in chunks of the model's n_batch. Throws
  // ContextOverflowError, changing nothing, when they do not fit, and ArgumentError for ids outside
  // the vocabulary. Stops between two chunks when `cancel` is set. Returns how many of `tokens` are
  // in the sequence now. Those that the cache holds for another session are not evaluated again.
  int64_t append(std::span<const TokenId> tokens, const CancelToken* cancel = nullptr);
  // As append, and calls `look(position, logits)` for each token, in order, on any thread that
  // evaluates with this model. `logits` [vocab_size] is valid during the call; tokens() may hold
  // later tokens of the chunk already. If `look` throws, the chunk's tokens stay.
  void append(std::span<const TokenId> tokens,
              const std::function<void(int64_t position, std::span<const float> logits)>& look);
  // Makes the sequence equal to `tokens`: keeps the longest common prefix and evaluates the rest
  // (at least the last token, so that there are logits). Returns how many were kept, or found in
  // the cache of another session. Throws as append() does, and ArgumentError for no tokens.
  int64_t assign(std::span<const TokenId> tokens, const CancelToken* cancel = nullptr);
  // Removes the tokens from position `n` on.
  void truncate(int64_t n);
  // Context shift: drops the older half of the tokens after the first `n_keep`, and evaluates the
  // tokens that follow again at their new positions, until `cancel` is set. Returns how many were
  // dropped. Throws ArgumentError when there is nothing to drop.
  int64_t shift(int64_t n_keep, const CancelToken* cancel = nullptr);

  // The logits after the last of tokens(): [vocab_size], natural log-odds up to a constant. Throws
  // ArgumentError when there are no tokens. Valid until the session changes. The first call after
  // truncate(), a cancelled call or an exception evaluates the last token again; so does the first
  // one after a greedy or top-k answer, which reads only the best logits.
  std::span<const float> logits() const;

  // Continues after tokens() and after the text of an earlier stream: with the same seed, two
  // answers of 5 tokens are the same as one of 10, except that stop strings, stop_at_repetition,
  // samplers with a state and RandomNumbers::kMersenneTwister start again, that the positions of a
  // shifted context are counted anew, and that an n_keep of -1 keeps the earlier answer too. Throws
  // ArgumentError when there are no tokens, and for options out of range.
  TextStream generate(const GenerationOptions& options = {});
  // Replaces the sequence by `prompt` (encoded as plain text, with BOS where the model wants it),
  // reusing a common prefix, and continues it; both when the stream is first read. Throws
  // ArgumentError when `prompt` has no tokens, ContextOverflowError when they do not fit.
  TextStream generate(std::string_view prompt, const GenerationOptions& options = {});

  class State;  // internal

 private:
  friend const std::shared_ptr<State>& state_of(const Session& session);  // internal

  std::shared_ptr<State> state_;  // shared with open streams
};

}  // namespace limpid
