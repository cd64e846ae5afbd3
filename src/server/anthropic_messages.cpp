// Anthropic's /v1/messages. A stream names the type of each event twice, before the data and in it:
//
//   event: message_start         data: {"type":"message_start", "message":{…, "content":[]}}
//   event: content_block_start   data: {…, "index":0, "content_block":{"type":"text","text":""}}
//   event: content_block_delta   data: {…, "delta":{"type":"text_delta","text":"The"}}
//   event: content_block_stop    data: {…, "index":0}
//   event: message_delta         data: {…, "delta":{"stop_reason":"end_turn",…}, "usage":{…}}
//   event: message_stop          data: {…}
//
// An answer may have several blocks there (text, tools); here it is one block of text.
#include "server/openai_shapes.h"

namespace limpid {
namespace {

// Every end that the model chose itself is an end of its turn.
const char* stop_reason(StopReason reason) {
  if (reason == StopReason::kLength) return "max_tokens";
  return reason == StopReason::kStopString ? "stop_sequence" : "end_turn";
}

class MessagesShape final : public AnswerShape {
 public:
  explicit MessagesShape(const ApiCall& call) : model_(call.served.name) {}

  ApiStyle style() const override { return ApiStyle::kAnthropic; }
  std::string prompt_field() const override { return "messages"; }

  std::string begin(int64_t n_prompt_tokens) override {
    const AnswerResults nothing{.n_prompt_tokens = n_prompt_tokens};
    return sse_event("message_start", {{"message", message(Json::array(), nothing, nullptr)}}) +
           sse_event("content_block_start",
                     {{"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}});
  }

  std::string token(const TokenEvent& token) override {
    return sse_event("content_block_delta",
                     {{"index", 0}, {"delta", {{"type", "text_delta"}, {"text", token.text}}}});
  }

  std::string choice_end(const TokenEvent& /*rest*/, const GenerationResult& /*result*/) override {
    return sse_event("content_block_stop", {{"index", 0}});
  }

  std::string end(const AnswerResults& results) override {
    const Json last = message(Json::array(), results, &results.choices.front());
    return sse_event(
               "message_delta",
               {{"delta",
                 {{"stop_reason", last["stop_reason"]}, {"stop_sequence", last["stop_sequence"]}}},
                {"usage", last["usage"]}}) +
           sse_event("message_stop", Json::object());
  }

  std::string failure(const ApiError& error) override {
    return sse_event("error", error_json(style(), error));
  }

  Json whole(const AnswerResults& results) override {
    const GenerationResult& result = results.choices.front();
    const Json block = {{"type", "text"}, {"text", result.text}};
    return message(Json::array({block}), results, &result);
  }

 private:
  // `result` is null while the answer is not complete. Tokens that were in the cache are not
  // counted as input, as in the original.
  Json message(Json content, const AnswerResults& results, const GenerationResult* result) const {
    const bool has_stop_string =
        result != nullptr && result->stop_reason == StopReason::kStopString;
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", std::move(content)},
            {"stop_reason", result == nullptr ? Json() : Json(stop_reason(result->stop_reason))},
            {"stop_sequence", has_stop_string ? Json(result->stop_string) : Json()},
            {"usage",
             {{"input_tokens", results.n_prompt_tokens - results.n_cached_tokens},
              {"cache_creation_input_tokens", 0},
              {"cache_read_input_tokens", results.n_cached_tokens},
              {"output_tokens", results.n_generated}}}};
  }

  const std::string id_ = new_id("msg_");
  const std::string model_;
};

std::vector<TokenId> prompt_of(const ApiCall& call, const JsonField& body,
                               const RequestSettings& settings) {
  const JsonField messages = body.required("messages");
  const auto system = body.find("system");
  return encode_messages(call.served, messages, settings, system ? content_text(*system) : "");
}

}  // namespace

void anthropic_messages(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, kMessagesApi);
  body.required("max_tokens");
  answer(call, settings, {prompt_of(call, body, settings)}, std::make_unique<MessagesShape>(call));
}

void anthropic_count_tokens(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, kMessagesApi);
  call.send({{"input_tokens", prompt_of(call, body, settings).size()}});
}

}  // namespace limpid
