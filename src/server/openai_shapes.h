// What OpenAI's answers have in common.
#pragma once

#include "server/answer.h"
#include "server/api.h"
#include "server/logprobs_json.h"

namespace limpid {

// "chatcmpl-" and 24 random letters and digits.
std::string new_id(std::string_view prefix);
// "2026-11-23T14:30:32Z", as Ollama writes times.
std::string rfc3339(int64_t unix_time);

// "length" or "stop"
const char* finish_reason(StopReason reason);

// llama-server's "timings".
Json timings_json(const GenerationTimings& timings);

// llama-server's "prompt_progress", and "timings" so far.
Json progress_json(const PromptProgress& progress);
Json timings_json(const PromptProgress& progress);

// llama-server's "generation_settings". `tokenizer` may be null.
Json generation_settings_json(const GenerationOptions& options, const Tokenizer* tokenizer);

// Reads Ollama's "options" of a request, and gives its context: num_ctx, or that of the server.
// Throws ApiError for a larger one.
int64_t read_ollama_options(const ApiCall& call, const JsonField& body, RequestSettings& settings);

// Continues the prompts of a request in the names of `api`.
template <typename Shape>
void continue_prompts(const ApiCall& call, ApiName api) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, api);
  auto prompts = read_prompts(call.served, body.required("prompt"));
  auto shape = std::make_unique<Shape>(call, settings, prompts);
  answer(call, settings, std::move(prompts), std::move(shape));
}

// The shape of the answers of /v1/chat/completions and /v1/completions: objects with an id, the
// model's name and "choices".
class OpenAiShape : public AnswerShape {
 public:
  OpenAiShape(const ApiCall& call, const RequestSettings& settings, std::string_view id_prefix,
              std::string object);

  std::string progress(const PromptProgress& progress) override;
  std::string token(const TokenEvent& event) override { return chunk(choice(event, nullptr)); }
  std::string choice_end(const TokenEvent& rest, const GenerationResult& result) override;
  std::string end(const AnswerResults& results) override;
  Json whole(const AnswerResults& results) override;

 protected:
  // A choice of an event; `finish` is null before its end.
  virtual Json choice(const TokenEvent& event, const char* finish) = 0;
  // A choice of an answer without a stream.
  virtual Json whole_choice(size_t index, const AnswerResults& results) = 0;
  // An event of a stream with one choice, and with `rest`, the text of more members.
  std::string chunk(const Json& choice, std::string_view rest = "") const;

  const bool wants_logprobs_;

 private:
  // An object with these choices; and with the tokens and the times of the whole answer.
  Json object(Json choices, bool is_chunk) const;
  Json object_of_all(Json choices, bool is_chunk, const AnswerResults& results) const;

  const bool include_usage_;
  const std::string id_, object_, model_, fingerprint_;
  const int64_t created_ = std::time(nullptr);
  std::string chunk_head_;
};

}  // namespace limpid
