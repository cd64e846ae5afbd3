#include "server/api.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/text.h"
#include "server/web_files.h"

namespace limpid {
namespace {

void say_healthy(const ServerCall& call) { call.send({{"status", "ok"}}); }

// llama-server can fetch what its page asks for. A server that does so reaches its neighbours for
// anyone who reaches the server.
void refuse_proxy(const ServerCall& /*call*/) {
  throw ApiError(403, "this server does not fetch from other servers");
}

struct Route {
  std::string_view method;
  std::initializer_list<std::string_view> paths;  // with a '/' at its end: all that go on after it
  // The second kind needs a model: the one that the request names.
  std::variant<void (*)(const ServerCall& call), void (*)(const ApiCall& call)> endpoint;
  bool needs_key = true;
};

const Route kRoutes[] = {
    {"GET", {"/health", "/v1/health"}, say_healthy, false},
    {"GET", {"/v1/models", "/models"}, list_models, false},
    {"GET", {"/v1/models/"}, tell_model, false},
    {"POST", {"/models/load"}, load_model},
    {"POST", {"/models/unload"}, unload_model},
    {"POST", {"/v1/chat/completions", "/chat/completions"}, chat_completions},
    {"POST",
     {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"},
     chat_input_tokens},
    {"POST", {"/v1/completions"}, completions},
    {"POST", {"/v1/responses", "/responses"}, responses},
    {"POST", {"/v1/responses/input_tokens", "/responses/input_tokens"}, responses_input_tokens},
    {"POST", {"/v1/embeddings", "/embeddings", "/api/embed"}, embeddings},
    {"POST", {"/completion", "/completions"}, llama_completion},
    {"POST", {"/tokenize"}, tokenize},
    {"POST", {"/detokenize"}, detokenize},
    {"POST", {"/apply-template"}, apply_template},
    {"GET", {"/props"}, props},
    {"GET", {"/lora-adapters"}, lora_adapters},
    {"POST", {"/lora-adapters"}, set_lora_adapters},
    {"GET", {"/slots"}, slots},
    {"POST", {"/slots/"}, slot_action},
    {"GET", {"/metrics"}, print_metrics},
    {"POST", {"/v1/messages"}, anthropic_messages},
    {"POST", {"/v1/messages/count_tokens"}, anthropic_count_tokens},
    {"POST", {"/api/chat"}, ollama_chat},
    {"POST", {"/api/generate"}, ollama_generate},
    {"GET", {"/api/tags"}, ollama_tags},
    {"GET", {"/api/ps"}, ollama_ps},
    {"POST", {"/api/show"}, ollama_show},
    {"GET", {"/api/version"}, ollama_version},
    {"POST", {"/predict"}, vertex_predict},
    {"POST", {"/explain"}, explain_answer},
    {"GET", {"/explain.html"}, explain_frame_page, false},
    {"GET", {"/cors-proxy"}, refuse_proxy},
    {"POST", {"/cors-proxy"}, refuse_proxy},
};

// Throws ApiError when there is none. An error for a path that exists lists the methods that it
// takes (RFC 9110, section 15.5.6); those of the page's files take what a route of GET takes.
const Route& route_of(const HttpRequest& request, bool offers_page) {
  std::string allowed = offers_page && is_web_path(request.path) ? "GET, HEAD" : "";
  const bool is_head = request.method == "HEAD";
  const std::string_view method = is_head ? std::string_view("GET") : request.method;
  for (const Route& route : kRoutes) {
    const bool fits = std::ranges::any_of(route.paths, [&](std::string_view path) {
      return path.ends_with('/') ? request.path.starts_with(path) : request.path == path;
    });
    if (!fits) continue;
    if (route.method == method) return route;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allowed.empty()) throw ApiError(404, "unknown path " + request.path);
  ApiError error(405, request.path + " does not take " + request.method);
  error.headers.emplace_back("Allow", std::move(allowed));
  throw error;
}

}  // namespace

std::string asked_model(const Api& api, const HttpRequest& request) {
  if (api.shelf().size() < 2) return "";
  const bool has_object = request.method == "POST" && trimmed_left(request.body).starts_with('{');
  const std::string name = has_object ? JsonBody(request.body).string_or_empty("model") : "";
  return name.empty() ? query_value(request.query, "model") : name;
}

void call_with_model(const Api& api, void (*endpoint)(const ApiCall& call), HttpRequest request,
                     const std::shared_ptr<HttpReply>& reply) {
  ModelShelf& shelf = api.shelf();
  const std::string name = asked_model(api, request);
  const bool may_load =
      api.options().loads_models && query_value(request.query, "autoload") != "false";
  const ModelShelf::Ticket ticket = shelf.new_ticket();
  // Before the loan, which may come on another thread: the endpoint replaces it by its own.
  reply->on_gone([&shelf, ticket] { shelf.forget(ticket); });
  shelf.lend(name, may_load, ticket,
             [&api, endpoint, request = std::move(request), reply](
                 const ModelShelf::Loan& loan, const std::exception_ptr& error) {
               try {
                 if (error) std::rethrow_exception(error);
                 endpoint({{api, request, reply}, loan});
               } catch (...) {
                 send_error(*reply, style_of(request.path), as_api_error(std::current_exception()));
               }
             });
}

void Api::handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
  const ApiStyle style = style_of(request.path);
  try {
    const auto file = options_.offers_page ? web_answer(request) : std::nullopt;
    if (file) return reply->send(*file);
    const Route& route = route_of(request, options_.offers_page);
    if (route.needs_key && !options_.keys.allow(request))
      throw ApiError(401, "a valid API key is missing");
    if (is_draining_) throw ApiError(503, "the server is shutting down");
    if (!is_ready_) throw ApiError(503, "the model is being loaded");
    if (const auto* endpoint = std::get_if<0>(&route.endpoint)) {
      (*endpoint)({*this, request, reply});
    } else {
      call_with_model(*this, std::get<1>(route.endpoint), std::move(request), reply);
    }
  } catch (...) {
    send_error(*reply, style, as_api_error(std::current_exception()));
  }
}

}  // namespace limpid
