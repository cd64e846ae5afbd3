// A model that the server offers, and what the APIs need of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate/embedding_task.h"
#include "generate/engine.h"
#include "insight/probe_executor.h"
#include "server/generation_service.h"
#include "server/json_body.h"
#include "server/metrics.h"
#include "server/request_settings.h"
#include "server/served_adapters.h"

namespace limpid {

struct ServedModel {
  LanguageModel model;
  std::unique_ptr<GenerationService> service;
  std::string name;                                   // what clients call it
  std::shared_ptr<const ChatTemplate> chat_template;  // its own, or ChatML
  GenerationOptions defaults;                         // of requests that do not say otherwise
  std::shared_ptr<ServedAdapters> adapters;           // never null
  // The template is not the model's own, and writes no BOS: the tokenizer puts it before a prompt
  // where the model wants one.
  bool adds_bos = false;
  // The value of `enable_thinking` in templates, unless a request says otherwise.
  bool thinks = true;
  Pooling pooling = Pooling::kMean;  // of embeddings, unless a request says otherwise
  ProbeExecutor* probe = nullptr;    // the engine's executor, if it can be looked into
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();

  // Most tokens of a request, prompt and answer.
  int64_t n_ctx() const { return service->n_ctx(); }
  Engine& engine() const { return *engine_of(model); }
  const Tokenizer& tokenizer() const { return *engine().tokenizer(); }
  const Tokenizer* tokenizer_or_null() const {
    return engine().has_tokenizer() ? engine().tokenizer().get() : nullptr;
  }
  RequestSettings settings() const { return {.generation = defaults}; }
};

// Gives `model` a service, and its template or ChatML. `adapters` are those that it was opened
// with, each with the scale 1. `has_own_template`: the template that `model` has, if it has one,
// came with it.
std::unique_ptr<ServedModel> make_served_model(LanguageModel model, std::string name,
                                               GenerationOptions defaults,
                                               const ServiceOptions& options,
                                               std::vector<ServedAdapter> adapters = {},
                                               bool has_own_template = true);

// What /props reports of it, also while it sleeps.
Json model_props(const ServedModel& served);

// Which adapters count for a request; null when all count as they were opened. Throws ApiError.
std::shared_ptr<const AdapterMix> adapter_mix(const ServedModel& served,
                                              const RequestSettings& settings);

// One or several prompts: "text", [ids], [ids and "texts", mixed], or an array of these in which no
// number stands. {"prompt_string": "text"} is a text. Throws ApiError, which calls each `what`.
std::vector<std::vector<TokenId>> read_prompts(const ServedModel& served, const JsonField& field,
                                               std::string_view what = "prompt");

// The prompt of a conversation. `messages` is an array of {role, content}, where content is a
// string or an array of {"type": "text", "text"}; `system` (may be empty) comes before them. `name`
// and `reasoning_content` of a message go to the template too. Only the template writes control
// tokens. Throws ApiError, which names the message, also for members that are not empty and would
// have no effect.
std::vector<TokenId> encode_messages(const ServedModel& served, const JsonField& messages,
                                     const RequestSettings& settings,
                                     const std::string& system = "");
// Throws ApiError where "continue_final_message": true of a request has nothing to continue.
void check_continues_last(const JsonField& body);
// The same prompt as text, for people to look at, with `tools` (may be null) for templates that
// know them.
std::string render_messages(const ServedModel& served, const JsonField& messages,
                            const RequestSettings& settings, const Json& tools);

}  // namespace limpid
