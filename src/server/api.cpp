#include "server/api.h"

#include "server/web_files.h"

namespace limpid {
namespace {

// For health, which is answered without a model.
void say_healthy(const ApiCall& call) { call.send({{"status", "ok"}}); }

struct Route {
  std::string_view method;
  std::string_view path;  // with a '/' at its end: all paths that go on after it
  void (*endpoint)(const ApiCall& call);
  ApiStyle style = ApiStyle::kOpenAi;
  bool needs_key = true;
};

constexpr Route kRoutes[] = {
    {"GET", "/health", say_healthy, ApiStyle::kOpenAi, false},
    {"GET", "/v1/health", say_healthy, ApiStyle::kOpenAi, false},
    {"GET", "/v1/models", list_models, ApiStyle::kOpenAi, false},
    {"GET", "/models", list_models, ApiStyle::kOpenAi, false},
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/chat/completions", chat_completions},
    {"POST", "/v1/chat/completions/input_tokens", chat_input_tokens},
    {"POST", "/chat/completions/input_tokens", chat_input_tokens},
    {"POST", "/v1/completions", completions},
    {"POST", "/v1/responses", responses},
    {"POST", "/responses", responses},
    {"POST", "/v1/responses/input_tokens", responses_input_tokens},
    {"POST", "/v1/embeddings", embeddings},
    {"POST", "/embeddings", embeddings},
    {"POST", "/completion", llama_completion},
    {"POST", "/completions", llama_completion},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"GET", "/props", props},
    {"GET", "/slots", slots},
    {"POST", "/slots/", slot_action},
    {"GET", "/metrics", print_metrics},
    {"POST", "/v1/messages", anthropic_messages, ApiStyle::kAnthropic},
    {"POST", "/v1/messages/count_tokens", anthropic_count_tokens, ApiStyle::kAnthropic},
    {"POST", "/api/chat", ollama_chat, ApiStyle::kOllama},
    {"POST", "/api/generate", ollama_generate, ApiStyle::kOllama},
    {"GET", "/api/tags", ollama_tags, ApiStyle::kOllama},
    {"GET", "/api/version", ollama_version, ApiStyle::kOllama},
};

// Throws ApiError when there is none.
const Route& route_of(const HttpRequest& request) {
  bool path_exists = false;
  const bool is_head = request.method == "HEAD";
  const std::string_view method = is_head ? std::string_view("GET") : request.method;
  for (const Route& route : kRoutes) {
    const bool fits = route.path.ends_with('/') ? request.path.starts_with(route.path)
                                                : request.path == route.path;
    if (!fits) continue;
    if (route.method == method) return route;
    path_exists = true;
  }
  if (path_exists) throw ApiError(405, request.path + " does not take " + request.method);
  throw ApiError(404, "unknown path " + request.path);
}

}  // namespace

void Api::set_model(std::unique_ptr<ServedModel> model) {
  owned_model_ = std::move(model);
  model_ = owned_model_.get();
}

void Api::handle(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  ApiStyle style = ApiStyle::kOpenAi;
  try {
    const auto file = options_.offers_page ? web_answer(request) : std::nullopt;
    if (file) return reply->send(*file);
    const Route& route = route_of(request);
    style = route.style;
    if (route.needs_key && !options_.keys.allow(request))
      throw ApiError(401, "a valid API key is missing");
    if (is_draining_) throw ApiError(503, "the server is shutting down");
    const ServedModel* const served = model_;
    if (served == nullptr) throw ApiError(503, "the model is being loaded");
    route.endpoint({*this, *served, request, reply});
  } catch (...) {
    reply->send(error_answer(style, as_api_error(std::current_exception())));
  }
}

}  // namespace limpid
