// What a request asks for, whichever API it came through. One table knows all fields of all APIs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "limpid/generation.hpp"
#include "server/json_body.h"
#include "server/served_adapters.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// Whose names an object of a request uses. As bits, because most fields belong to several.
enum ApiName : unsigned {
  kChatApi = 1,            // OpenAI's /v1/chat/completions
  kCompletionsApi = 2,     // OpenAI's /v1/completions
  kLlamaApi = 4,           // llama-server's /completion
  kMessagesApi = 8,        // Anthropic's /v1/messages
  kResponsesApi = 16,      // OpenAI's /v1/responses
  kOllamaChatApi = 32,     // Ollama's /api/chat
  kGenerateApi = 64,       // Ollama's /api/generate
  kOllamaOptionsApi = 128  // "options" in these two
};

struct RequestSettings {
  GenerationOptions generation{};
  int64_t n_choices = 1;
  bool stream = false;
  bool include_usage = false;    // in a stream of OpenAI's
  bool echo = false;             // the text begins with the prompt
  bool return_tokens = false;    // llama-server's: ids beside the text
  bool verbose = false;          // llama-server's: the prompt's text with the answer
  int64_t slot = -1;             // llama-server's id_slot: GenerationRequest::slot
  bool return_progress = false;  // llama-server's: a stream reports how far the prompt is
  // llama-server's: of the answer, only these; "a/b" is the member b of a.
  std::vector<std::string> response_fields{};
  std::optional<std::vector<AdapterScale>> adapter_scales{};  // nothing: as for all requests
  bool wants_logprobs = false;
  bool wants_prompt_logprobs() const { return echo && wants_logprobs; }
  int32_t n_top_logprobs = 0;
  std::string grammar{};  // that the answer follows, in GBNF; that of a JSON schema, too
  // Of a chat.
  Json template_variables{};          // more variables for the template; null for none
  bool add_generation_prompt = true;  // end the prompt where the assistant is to speak
  bool continues_last = true;         // an assistant's last message is the beginning of the answer
};

// Reads the members of `object` that the table knows for `api` into `settings`; those of the
// request's content (messages, prompt, …) it leaves to the caller. A field that is null counts as
// absent. Throws ApiError, which names the field, for a value of a wrong type or out of its range,
// for a field that would change the answer and cannot be honoured, and for an unknown field.
// `tokenizer` may be null.
void read_settings(const JsonField& object, ApiName api, const Tokenizer* tokenizer,
                   RequestSettings& settings);

}  // namespace limpid
