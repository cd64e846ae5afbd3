// A model that the server offers, and what the APIs need of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate/engine.h"
#include "server/generation_service.h"
#include "server/json_body.h"
#include "server/metrics.h"
#include "server/request_settings.h"
#include "server/served_adapters.h"

namespace limpid {

struct ServedModel {
  LanguageModel model;
  std::unique_ptr<GenerationService> service;
  std::string name;  // what clients call it
  std::string path;
  std::shared_ptr<const ChatTemplate> chat_template;  // its own, or ChatML
  GenerationOptions defaults;                         // of requests that do not say otherwise
  std::shared_ptr<ServedAdapters> adapters;           // never null
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();

  Engine& engine() const { return *engine_of(model); }
  const Tokenizer& tokenizer() const { return *engine().tokenizer(); }
  const Tokenizer* tokenizer_or_null() const {
    return engine().has_tokenizer() ? engine().tokenizer().get() : nullptr;
  }
  RequestSettings settings() const {
    RequestSettings settings;
    settings.generation = defaults;
    return settings;
  }
};

// Gives `model` a service, and its template or ChatML. `adapters` are those that it was opened
// with, each with the scale 1.
std::unique_ptr<ServedModel> make_served_model(LanguageModel model, std::string name,
                                               GenerationOptions defaults,
                                               const ServiceOptions& options,
                                               std::vector<ServedAdapter> adapters = {});

// For a model without a template of its own, as llama-server does it.
inline constexpr const char* kChatMlTemplate =
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% "
    "endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// Which adapters count for a request; null when all count as they were opened. Throws ApiError.
std::shared_ptr<const AdapterMix> adapter_mix(const ServedModel& served,
                                              const RequestSettings& settings);

// Plain text: text of control tokens in it stays text.
std::vector<TokenId> encode_text(const ServedModel& served, std::string_view text);

// One or several prompts: "text", [ids], [ids and "texts", mixed], or an array of these in which no
// number stands. {"prompt_string": "text"} is a text. Throws ApiError.
std::vector<std::vector<TokenId>> read_prompts(const ServedModel& served, const JsonField& field);

// The prompt of a conversation. `messages` is an array of {role, content}, where content is a
// string or an array of {"type": "text", "text"}; `system` (may be empty) comes before them. Only
// the template writes control tokens. Throws ApiError, which names the message.
std::vector<TokenId> encode_messages(const ServedModel& served, const JsonField& messages,
                                     const RequestSettings& settings,
                                     const std::string& system = "");
// The same as text, for people to look at.
std::string render_messages(const ServedModel& served, const JsonField& messages,
                            const RequestSettings& settings);

// The text of a message's content.
std::string content_text(const JsonField& content);

}  // namespace limpid
