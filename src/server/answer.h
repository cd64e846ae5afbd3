// From an internal request to the answer of an API: one way for all of them. An API provides an
// AnswerShape, which writes its JSON. The queue, the stream, clients that leave and the counts are
// handled here.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/errors.h"
#include "server/generation_service.h"
#include "server/request_settings.h"

namespace limpid {

struct ApiCall;

// Server-sent events (WHATWG HTML, section 9.2): how an answer is streamed over HTTP.
inline constexpr const char* kEventStream = "text/event-stream";
// What OpenAI's streams end with.
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// "data: {…}\n\n"
std::string sse_event(const Json& data);
// "event: TYPE\ndata: {"type":"TYPE",…}\n\n"
std::string sse_event(std::string_view type, const Json& members);

// What the choices of one request came to, in the order of prompts and choices.
struct AnswerResults {
  std::vector<GenerationResult> choices{};
  // Of the tokens of each prompt, where RequestSettings::wants_prompt_logprobs asks for them.
  std::vector<std::vector<TokenLogprobs>> prompts{};
  int64_t n_prompt_tokens = 0;  // of all prompts
  int64_t n_cached_tokens = 0;  // of these, found in the KV cache
  int64_t n_generated = 0;
};

// How far the evaluation of a prompt is.
struct PromptProgress {
  size_t choice = 0;    // the first choice of the prompt
  int64_t n_total = 0;  // its tokens
  int64_t n_found = 0;  // of these, found in the KV cache
  int64_t n_done = 0;   // found or evaluated
  double seconds = 0;   // since it began
};

// How an API writes the parts of an answer. The methods are called one at a time. Those that return
// a string give bytes of the stream.
class AnswerShape {
 public:
  AnswerShape() = default;
  AnswerShape(const AnswerShape&) = delete;
  AnswerShape& operator=(const AnswerShape&) = delete;
  virtual ~AnswerShape() = default;

  virtual ApiStyle style() const { return ApiStyle::kOpenAi; }
  virtual std::string content_type() const { return kEventStream; }
  // The field of the request that holds the prompt. The error about a prompt that does not fit
  // names it.
  virtual std::string prompt_field() const { return "prompt"; }
  virtual std::string begin(int64_t /*n_prompt_tokens*/) { return ""; }
  // Before anything else of a choice, for a request that wants log-probabilities of its prompt.
  virtual std::string prompt(size_t /*choice*/, std::span<const TokenLogprobs> /*tokens*/) {
    return "";
  }
  // The slot that the prompt of this choice has taken, before anything else of it; -1: none.
  virtual void slot(size_t /*choice*/, int64_t /*slot*/) {}
  // Only with RequestSettings::return_progress.
  virtual std::string progress(const PromptProgress& /*progress*/) { return ""; }
  virtual std::string token(const TokenEvent& event) = 0;
  // A choice has ended. `rest` has its last tokens, which no call of token() had, and no text.
  virtual std::string choice_end(const TokenEvent& rest, const GenerationResult& result) = 0;
  virtual std::string end(const AnswerResults& results) = 0;
  // The stream fails after it has begun.
  virtual std::string failure(const ApiError& error) {
    return sse_event(error_json(style(), error)) + std::string(kSseDone);
  }
  // The answer without a stream.
  virtual Json whole(const AnswerResults& results) = 0;
};

// Generates settings.n_choices continuations of each prompt and answers with them, or with what
// went wrong. Holds the model until then. Throws ApiError for too many of them, and for adapters
// that do not exist.
void answer(const ApiCall& call, const RequestSettings& settings,
            std::vector<std::vector<TokenId>> prompts, std::unique_ptr<AnswerShape> shape);

}  // namespace limpid
