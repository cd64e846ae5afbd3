// Ollama's /api/chat, /api/generate and /api/version. A stream is a line of JSON for each part,
// without "data:", and it is what a request gets unless it says "stream": false.
//
//   {"model":"…", "message":{"role":"assistant","content":"The"}, "done":false}
//   {"model":"…", "message":{"role":"assistant","content":""}, "done":true, "eval_count":9, …}
//
// /api/generate has "response":"The" in place of the message. Without a prompt both only load the
// model, and say so: "done_reason":"load". With "keep_alive": 0 they unload it: "unload".
#include <fmt/format.h>

#include "server/openai_shapes.h"
#include "server/sampling_fields.h"

namespace limpid {
namespace {

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

class OllamaShape final : public AnswerShape {
 public:
  OllamaShape(const ApiCall& call, bool is_chat) : model_(call.served.name), is_chat_(is_chat) {}

  ApiStyle style() const override { return ApiStyle::kOllama; }
  std::string content_type() const override { return "application/x-ndjson"; }

  std::string token(const TokenEvent& event) override {
    Json json = part(std::string(event.text), false);
    if (!event.logprobs.empty()) json["logprobs"] = logprobs_to_json(event.logprobs);
    return dump_json(json) + "\n";
  }
  std::string choice_end(const TokenEvent& rest, const GenerationResult& /*result*/) override {
    rest_ = rest.logprobs.empty() ? Json() : logprobs_to_json(rest.logprobs);
    return "";
  }
  std::string end(const AnswerResults& results) override {
    Json json = finished("", results);
    if (!rest_.is_null()) json["logprobs"] = rest_;
    return dump_json(json) + "\n";
  }
  std::string failure(const ApiError& error) override {
    return dump_json(error_json(style(), error)) + "\n";
  }
  Json whole(const AnswerResults& results) override {
    const GenerationResult& result = results.choices.front();
    Json json = finished(result.text, results);
    if (!result.logprobs.empty()) json["logprobs"] = logprobs_to_json(result.logprobs);
    return json;
  }

  // The answer to a request without a prompt.
  Json without_prompt(const char* done_reason) const {
    Json json = part("", true);
    json["done_reason"] = done_reason;
    return json;
  }

 private:
  Json part(const std::string& text, bool is_done) const {
    Json json = {{"model", model_}, {"created_at", rfc3339(std::time(nullptr))}};
    if (is_chat_) {
      json["message"] = {{"role", "assistant"}, {"content", text}};
    } else {
      json["response"] = text;
    }
    json["done"] = is_done;
    return json;
  }

  // Times are in nanoseconds.
  Json finished(const std::string& text, const AnswerResults& results) const {
    const GenerationResult& result = results.choices.front();
    const GenerationTimings& timings = result.timings;
    Json json = part(text, true);
    json["done_reason"] = finish_reason(result.stop_reason);
    json["total_duration"] = nanoseconds(timings.prompt_seconds + timings.generation_seconds);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = results.n_prompt_tokens;
    json["prompt_eval_duration"] = nanoseconds(timings.prompt_seconds);
    json["eval_count"] = timings.n_generated;
    json["eval_duration"] = nanoseconds(timings.generation_seconds);
    return json;
  }

  const std::string model_;
  const bool is_chat_;
  Json rest_;
};

// A stream unless the request says otherwise.
RequestSettings ollama_settings(const ApiCall& call, const JsonField& body, ApiName api) {
  RequestSettings settings = call.served.settings();
  settings.stream = true;
  read_settings(body, api, call.served.tokenizer_or_null(), settings);
  read_ollama_options(call, body, settings);
  return settings;
}

// The prompt is a user's message unless "raw" is true.
std::vector<TokenId> prompt_of_generate(const ApiCall& call, const JsonField& body,
                                        const RequestSettings& settings) {
  const std::string text = body.string_or_empty("prompt");
  if (body.boolean("raw", false)) {
    const auto system = body.find("system");
    if (system && !system->is_empty())
      system->fail("cannot be beside raw: a raw prompt has no roles");
    return call.served.tokenizer().encode(text);
  }
  const Json messages = Json::array({{{"role", "user"}, {"content", text}}});
  return encode_messages(call.served, JsonField(messages, "prompt"), settings,
                         body.string_or_empty("system"));
}

// A request without a prompt only wants the model to be loaded, or to leave.
void answer_without_prompt(const ApiCall& call, const JsonField& body, const OllamaShape& shape) {
  const auto keep_alive = body.find("keep_alive");
  const bool leaves = keep_alive && is_zero_duration(*keep_alive);
  if (leaves) call.api.shelf().unload(call.served.name);
  call.send(shape.without_prompt(leaves ? "unload" : "load"));
}

}  // namespace

int64_t read_ollama_options(const ApiCall& call, const JsonField& body, RequestSettings& settings) {
  const int64_t n_ctx = call.served.n_ctx();
  const auto options = body.find("options");
  if (!options) return n_ctx;
  read_settings(*options, kOllamaOptionsApi, call.served.tokenizer_or_null(), settings);
  const auto asked = options->find("num_ctx");
  const int64_t n_asked = asked ? asked->integer(0, kMostTokensOfField) : 0;
  if (n_asked > n_ctx)
    asked->fail(
        fmt::format("is {}, and the server has room for {} tokens: ask for no more, or start "
                    "it with a larger context",
                    n_asked, n_ctx));
  return n_asked == 0 ? n_ctx : n_asked;
}

void ollama_chat(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = ollama_settings(call, body, kOllamaChatApi);
  auto shape = std::make_unique<OllamaShape>(call, true);
  const auto messages = body.find("messages");
  if (!messages || messages->elements().empty()) return answer_without_prompt(call, body, *shape);
  answer(call, settings, {encode_messages(call.served, *messages, settings)}, std::move(shape));
}

void ollama_generate(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = ollama_settings(call, body, kGenerateApi);
  auto shape = std::make_unique<OllamaShape>(call, false);
  if (body.string_or_empty("prompt").empty()) return answer_without_prompt(call, body, *shape);
  answer(call, settings, {prompt_of_generate(call, body, settings)}, std::move(shape));
}

void ollama_version(const ServerCall& call) {
  call.send({{"version", call.api.options().version}});
}

}  // namespace limpid
