// The models that the server offers: OpenAI's /v1/models, Ollama's /api/tags, and llama-server's
// /models/load and /models/unload.
#include "server/openai_shapes.h"

namespace limpid {
namespace {

constexpr const char* kStateNames[] = {"unloaded", "loading", "loaded", "sleeping"};  // by state

std::string model_of(const ServerCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"model"});
  return body.required("model").string();
}

// Only facts from the header of its file, so that a question does not load the model.
Json model_json(const ServerCall& call, const ModelShelf::Entry& entry) {
  Json status = {{"value", kStateNames[static_cast<size_t>(entry.state)]}};
  if (entry.has_failed) status["failed"] = true;
  return {{"id", entry.card.name},
          {"object", "model"},
          {"created", call.api.start_time()},
          {"owned_by", "limpid"},
          {"aliases", entry.card.aliases},
          {"tags", entry.card.tags},
          {"status", std::move(status)},
          {"meta",
           {{"n_vocab", entry.card.vocab_size},
            {"n_ctx_train", entry.card.n_ctx_train},
            {"n_embd", entry.card.d_model}}}};
}

}  // namespace

void list_models(const ServerCall& call) {
  auto list = Json::array();
  for (const ModelShelf::Entry& entry : call.api.shelf().list())
    list.push_back(model_json(call, entry));
  call.send({{"object", "list"}, {"data", std::move(list)}});
}

// /v1/models/NAME. Throws ApiError (404) for an unknown name.
void tell_model(const ServerCall& call) {
  const std::string name = call.request.path.substr(std::string_view("/v1/models/").size());
  call.send(model_json(call, call.api.shelf().look_at(name)));
}

// Answers at once; the list of models tells when the model is loaded.
void load_model(const ServerCall& call) {
  ModelShelf& shelf = call.api.shelf();
  shelf.lend(model_of(call), true, shelf.new_ticket(), [](const auto&, const auto&) {});
  call.send({{"success", true}});
}

void unload_model(const ServerCall& call) {
  call.api.shelf().unload(model_of(call));
  call.send({{"success", true}});
}

void ollama_tags(const ServerCall& call) {
  auto list = Json::array();
  for (const ModelShelf::Entry& entry : call.api.shelf().list()) {
    const ModelCard& card = entry.card;
    list.push_back({{"name", card.name},
                    {"model", card.name},
                    {"modified_at", rfc3339(call.api.start_time())},
                    {"size", card.n_file_bytes},
                    {"digest", ""},
                    {"details",
                     {{"format", card.format},
                      {"family", card.architecture},
                      {"families", Json::array({card.architecture})},
                      {"parameter_size", ""},
                      {"quantization_level", ""}}}});
  }
  call.send({{"models", std::move(list)}});
}

}  // namespace limpid
