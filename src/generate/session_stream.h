// Streams of text: what stands behind a TextStream, and the one that a Session feeds.
#pragma once

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

class SessionStream : public TextStream::Source {
 public:
  // Puts `prompt` in place of the session's tokens first; with an empty one it continues what is
  // there. Throws ArgumentError when the session has an open stream, ContextOverflowError when the
  // prompt does not fit.
  SessionStream(std::shared_ptr<Session::State> session, std::vector<TokenId> prompt,
                const GenerationOptions& options);

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

  std::shared_ptr<Session::State> session_;
  std::shared_ptr<const void> lease_;  // of the session; null when this has ended
  std::vector<TokenId> prompt_;
  Continuation continuation_;
  bool begun_ = false;
  std::optional<TokenId> pending_;  // sampled, not yet evaluated
  std::string piece_;
};

}  // namespace limpid
