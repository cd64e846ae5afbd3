// Streams of text: what stands behind a TextStream, and the one that a Session feeds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generate/continuation.h"
#include "generate/session_state.h"
#include "limpid/text_stream.hpp"

namespace limpid {

class TextStream::Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<std::string_view> next() = 0;
  virtual const GenerationResult& result() const = 0;
};

struct Prompt {
  std::vector<TokenId> ids;
  int64_t n_dropped_messages = 0;  // of a chat
};

// Asked when the context is full after `n_sampled` tokens of an answer: a shorter prompt that
// leaves room for them and more, or nothing.
using ShortenPrompt = std::function<std::optional<Prompt>(int64_t n_sampled)>;

class SessionStream : public TextStream::Source {
 public:
  // Puts `prompt` in place of the session's tokens first; with an empty one it continues what is
  // there. Throws ArgumentError when the session has an open stream, ContextOverflowError when the
  // prompt does not fit.
  SessionStream(std::shared_ptr<Session::State> session, Prompt prompt,
                const GenerationOptions& options, ShortenPrompt shorten = {});

  std::optional<std::string_view> next() override;
  // Nothing more will come.
  bool ended() const { return lease_ == nullptr; }
  // Ends it as a CancelToken does.
  void stop();
  const GenerationResult& result() const override { return continuation_.result(); }

 private:
  void advance();
  void evaluate_prompt();
  void evaluate_and_sample();
  // Puts `tokens` in place of the session's, and returns how many were there; ends when cancelled.
  int64_t assign(std::span<const TokenId> tokens);
  // Before one more token is evaluated: a shorter prompt, a context shift, or the end.
  void make_room();

  std::shared_ptr<Session::State> session_;
  std::shared_ptr<const void> lease_;  // of the session; null when this has ended
  std::vector<TokenId> prompt_;
  ShortenPrompt shorten_;
  Continuation continuation_;
  bool begun_ = false;
  std::string piece_;
};

}  // namespace limpid
