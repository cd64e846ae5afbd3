// What OpenAI's answers have in common.
#pragma once

#include "server/api.h"
#include "server/logprobs_json.h"

namespace limpid {

// "chatcmpl-" and 24 random letters and digits.
std::string new_id(std::string_view prefix);
int64_t unix_seconds();
// "2026-11-23T14:30:32Z", as Ollama writes times.
std::string rfc3339(int64_t unix_time);

// "length" or "stop"
const char* finish_reason(StopReason reason);

// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json usage_json(const AnswerResults& results);

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

// llama-server's "__verbose", {"prompt": text}. Null unless it is asked for.
Json verbose_json(const ApiCall& call, const RequestSettings& settings,
                  const std::vector<TokenId>& prompt);

// The shape of the answers of /v1/chat/completions and /v1/completions: objects with an id, the
// model's name and "choices".
class OpenAiShape : public AnswerShape {
 public:
  OpenAiShape(const ApiCall& call, const RequestSettings& settings, std::string_view id_prefix,
              std::string object);

  std::string end(const AnswerResults& results) override;

 protected:
  // An object with these choices; and with the tokens and the times of the whole answer.
  Json object(Json choices, bool is_chunk) const;
  Json object_of_all(Json choices, bool is_chunk, const AnswerResults& results) const;
  // An event of a stream with one choice, and with `rest`, the text of more members.
  std::string chunk(const Json& choice, std::string_view rest = "") const;
  // The event that ends a choice. It has the times, unless an event with the usage follows.
  std::string last_chunk(const Json& choice, const GenerationTimings& timings) const;
  std::string progress_chunk(const Json& choice, const PromptProgress& progress) const;

  const bool include_usage_;
  const bool wants_logprobs_;

 private:
  const std::string id_, object_, model_, fingerprint_;
  const int64_t created_ = unix_seconds();
  std::string chunk_head_;
};

}  // namespace limpid
