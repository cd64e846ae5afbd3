// The models that the server offers: OpenAI's /v1/models, Ollama's /api/tags, /api/ps and
// /api/show, and llama-server's /models/load and /models/unload.
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

namespace {

// Ollama's. What a header does not tell is empty.
Json details_json(const ModelCard& card) {
  return {{"format", card.format},
          {"family", card.architecture},
          {"families", Json::array({card.architecture})},
          {"parameter_size", ""},
          {"quantization_level", ""}};
}

}  // namespace

void ollama_tags(const ServerCall& call) {
  auto list = Json::array();
  for (const ModelShelf::Entry& entry : call.api.shelf().list()) {
    const ModelCard& card = entry.card;
    list.push_back({{"name", card.name},
                    {"model", card.name},
                    {"modified_at", rfc3339(call.api.start_time())},
                    {"size", card.n_file_bytes},
                    {"digest", ""},
                    {"details", details_json(card)}});
  }
  call.send({{"models", std::move(list)}});
}

// The models in memory. No time is set at which they leave, which Ollama writes as one far away.
void ollama_ps(const ServerCall& call) {
  auto list = Json::array();
  for (const ModelShelf::Entry& entry : call.api.shelf().list()) {
    if (entry.state != ShelfState::kLoaded) continue;
    const ModelCard& card = entry.card;
    list.push_back({{"name", card.name},
                    {"model", card.name},
                    {"size", card.n_bytes},
                    {"digest", ""},
                    {"details", details_json(card)},
                    {"expires_at", "9999-12-31T23:59:59Z"},
                    {"context_length", entry.props->at("default_generation_settings")["n_ctx"]}});
  }
  call.send({{"models", std::move(list)}});
}

// Clients ask for every model of /api/tags, so this loads none. The template is Jinja's. The names
// in model_info are those of GGUF, whatever the format.
void ollama_show(const ServerCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"model", "name", "verbose", "system", "template", "options"});
  body.refuse_others({"model", "name", "verbose"});  // Ollama's client in Go sends empty ones
  body.boolean("verbose", false);                    // throws if it is not a boolean
  const std::string older_name = body.string_or_empty("name");
  const std::string name = body.string_or_empty("model");
  const ModelShelf::Entry entry = call.api.shelf().look_at(name.empty() ? older_name : name);
  const ModelCard& card = entry.card;
  call.send({{"modified_at", rfc3339(call.api.start_time())},
             {"details", details_json(card)},
             {"template", card.chat_template},
             {"model_info",
              {{"general.architecture", card.architecture},
               {card.architecture + ".context_length", card.n_ctx_train},
               {card.architecture + ".embedding_length", card.d_model},
               {card.architecture + ".vocab_size", card.vocab_size}}},
             {"capabilities", Json::array({"completion"})}});
}

}  // namespace limpid
