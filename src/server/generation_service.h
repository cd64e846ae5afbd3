// What the APIs need from an engine: requests go in, tokens come out on the engine's thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limpid/generation.hpp"
#include "limpid/model.hpp"

namespace limpid {

// Some text of one choice became ready, with the tokens that were sampled since the event before.
// A token may come with a later event than its text: a character may end in a later token, and text
// that may begin a stop string is held back.
struct TokenEvent {
  size_t choice = 0;
  std::string_view text;  // whole UTF-8, never empty
  std::span<const TokenId> ids;
  std::span<const TokenLogprobs> logprobs;  // of ids; empty unless they were asked for
};

// One prompt, continued once for each of `choices`. The callbacks come one at a time on the
// engine's thread; they must not wait, throw, or call the service.
struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::vector<GenerationOptions> choices;
  int priority = 0;                // higher goes first
  std::function<void()> on_start;  // it has left the queue
  std::function<void(const TokenEvent&)> on_token;
  // Once for each choice, also when it was cancelled. With an error the result is what there was.
  std::function<void(size_t choice, const GenerationResult&, std::exception_ptr error)> on_end;
};

// There are as many requests in the queue as it may hold.
class QueueFullError : public Error {
 public:
  using Error::Error;
};

// All methods may be called from any thread.
class GenerationService {
 public:
  using Id = uint64_t;

  GenerationService() = default;
  GenerationService(const GenerationService&) = delete;
  GenerationService& operator=(const GenerationService&) = delete;
  virtual ~GenerationService() = default;

  // Throws QueueFullError, ArgumentError for options out of range, and ContextOverflowError for a
  // prompt that does not fit.
  virtual Id submit(GenerationRequest request) = 0;
  // The request's choices end with StopReason::kCancelled, unless they have ended.
  virtual void cancel(Id id) = 0;
  virtual int64_t n_queued() const = 0;
  virtual int64_t n_running() const = 0;
};

// Requests one after another, in the order of their priorities, with one Session. `max_queued`
// bounds those that wait.
std::unique_ptr<GenerationService> make_session_service(LanguageModel model, size_t max_queued);

}  // namespace limpid
