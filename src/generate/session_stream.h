// Streams of text: the interface behind TextStream, and the stream that a Session feeds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generate/continuation.h"
#include "generate/session_state.h"
#include "limpid/text_stream.hpp"

namespace limpid {

// What a TextStream reads from.
class TextStream::Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<std::string_view> next() = 0;
  virtual const GenerationResult& result() const = 0;
};

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
class SessionStream : public TextStream::Source {
 public:
  // Replaces the session's tokens by `prompt` at the first next(); with an empty prompt, continues
  // the tokens that are there. Throws ArgumentError when the session has an open stream,
  // ContextOverflowError when the prompt does not fit.
  SessionStream(std::shared_ptr<Session::State> session, Prompt prompt,
                const GenerationOptions& options, ShortenPrompt shorten = {});

  std::optional<std::string_view> next() override;
  // True when next() will give nothing more.
  bool ended() const { return lease_ == nullptr; }
  // Ends the stream as a CancelToken does.
  void stop();
  const GenerationResult& result() const override { return continuation_.result(); }

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

  std::shared_ptr<Session::State> session_;
  std::shared_ptr<const void> lease_;  // holds the session; null when the stream has ended
  std::vector<TokenId> prompt_;
  ShortenPrompt shorten_;
  Continuation continuation_;
  bool begun_ = false;
  std::string piece_;
};

}  // namespace limpid
