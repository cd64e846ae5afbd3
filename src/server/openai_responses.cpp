// OpenAI's /v1/responses, for text. An answer is a list of items, an item a list of parts, and a
// stream tells when each begins and ends:
//
//   response.created, response.in_progress
//     response.output_item.added
//       response.content_part.added
//         response.output_text.delta   {"delta": "The"}, once for each piece of text
//         response.output_text.done    {"text": "The whole text"}
//       response.content_part.done
//     response.output_item.done
//   response.completed, or response.incomplete where max_output_tokens has cut the text
//
// Each event repeats what it ends, so that a client may wait for any of them. `sequence_number`
// counts the events.
#include "server/openai_shapes.h"

namespace limpid {
namespace {

class ResponsesShape final : public AnswerShape {
 public:
  ResponsesShape(const ApiCall& call, const RequestSettings& settings, const JsonField& body)
      : settings_(settings), model_(call.served.name) {
    for (const char* key : {"instructions", "max_output_tokens", "metadata"}) {
      const auto field = body.find(key);
      echoed_[key] = field ? field->json() : Json();
    }
    for (const char* key : {"tool_choice", "parallel_tool_calls"}) {
      if (const auto field = body.find(key)) echoed_[key] = field->json();
    }
    const auto text = body.find("text");
    const auto format = text ? text->find("format") : std::nullopt;
    if (format) echoed_["text"] = {{"format", format->json()}};
  }

  std::string prompt_field() const override { return "input"; }
  std::string begin(int64_t /*n_prompt_tokens*/) override {
    const Json response = this->response("in_progress", Json::array());
    std::string text = event("response.created", {{"response", response}});
    text += event("response.in_progress", {{"response", response}});
    text += event("response.output_item.added",
                  {{"output_index", 0}, {"item", item("in_progress", Json::array())}});
    return text += event("response.content_part.added", in_item({{"part", part("")}}));
  }
  std::string progress(const PromptProgress& progress) override {
    return event("response.in_progress", {{"response", response("in_progress", Json::array())},
                                          {"prompt_progress", progress_json(progress)}});
  }
  std::string token(const TokenEvent& token) override {
    return event("response.output_text.delta",
                 in_item({{"delta", token.text}, {"logprobs", logprobs_to_json(token.logprobs)}}));
  }
  std::string choice_end(const TokenEvent& /*rest*/, const GenerationResult& result) override {
    const Json whole = part(result.text, result.logprobs);
    const Json item = this->item(status_of(result), Json::array({whole}));
    std::string text = event("response.output_text.done",
                             in_item({{"text", result.text}, {"logprobs", whole["logprobs"]}}));
    text += event("response.content_part.done", in_item({{"part", whole}}));
    return text += event("response.output_item.done", {{"output_index", 0}, {"item", item}});
  }
  std::string end(const AnswerResults& results) override {
    const std::string type = "response." + status_of(results.choices.front());
    return event(type, {{"response", whole(results)}});
  }
  std::string failure(const ApiError& error) override {
    return event("error", {{"code", error.type()}, {"message", error.what()}, {"param", nullptr}});
  }

  Json whole(const AnswerResults& results) override {
    const GenerationResult& result = results.choices.front();
    const std::string status = status_of(result);
    Json json = response(
        status, Json::array({item(status, Json::array({part(result.text, result.logprobs)}))}));
    if (status == "incomplete") json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    json["usage"] = {{"input_tokens", results.n_prompt_tokens},
                     {"input_tokens_details", {{"cached_tokens", results.n_cached_tokens}}},
                     {"output_tokens", results.n_generated},
                     {"output_tokens_details", {{"reasoning_tokens", 0}}},
                     {"total_tokens", results.n_prompt_tokens + results.n_generated}};
    return json;
  }

 private:
  static std::string status_of(const GenerationResult& result) {
    return result.stop_reason == StopReason::kLength ? "incomplete" : "completed";
  }
  static Json part(const std::string& text, std::span<const TokenLogprobs> logprobs = {}) {
    return {{"type", "output_text"},
            {"text", text},
            {"annotations", Json::array()},
            {"logprobs", logprobs_to_json(logprobs)}};
  }

  Json item(const std::string& status, Json content) const {
    return {{"type", "message"},
            {"id", item_id_},
            {"status", status},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }
  Json in_item(const Json& members) const {
    Json json = {{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}};
    json.update(members);
    return json;
  }
  std::string event(const std::string& type, const Json& members) {
    Json json = {{"sequence_number", n_events_++}};
    json.update(members);
    return sse_event(type, json);
  }
  Json response(const std::string& status, Json output) const {
    Json json = {{"id", id_},
                 {"object", "response"},
                 {"created_at", created_},
                 {"status", status},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", model_},
                 {"output", std::move(output)},
                 {"parallel_tool_calls", true},
                 {"temperature", settings_.generation.sampler.temperature},
                 {"top_p", settings_.generation.sampler.top_p},
                 {"text", {{"format", {{"type", "text"}}}}},
                 {"tool_choice", "auto"},
                 {"tools", Json::array()},
                 {"usage", nullptr}};
    json.update(echoed_);
    return json;
  }

  const RequestSettings settings_;
  const std::string model_, id_ = new_id("resp_"), item_id_ = new_id("msg_");
  const int64_t created_ = std::time(nullptr);
  Json echoed_ = Json::object();  // what the request said
  int64_t n_events_ = 0;
};

std::vector<TokenId> prompt_of(const ApiCall& call, const JsonField& body,
                               const RequestSettings& settings) {
  const JsonField input = body.required("input");
  if (!input.json().is_string()) input.elements("a string or an array");  // throws
  const Json messages = input.json().is_string()
                            ? Json::array({{{"role", "user"}, {"content", input.json()}}})
                            : input.json();
  return encode_messages(call.served, JsonField(messages, "input"), settings,
                         body.string_or_empty("instructions"));
}

}  // namespace

void responses(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, kResponsesApi);
  answer(call, settings, {prompt_of(call, body, settings)},
         std::make_unique<ResponsesShape>(call, settings, body));
}

void responses_input_tokens(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, kResponsesApi);
  call.send({{"object", "response.input_tokens"},
             {"input_tokens", prompt_of(call, body, settings).size()}});
}

}  // namespace limpid
