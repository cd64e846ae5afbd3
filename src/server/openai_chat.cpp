// /v1/chat/completions. A stream with one choice, each line followed by an empty one:
//
//   data: {…, "choices":[{"index":0,"delta":{"role":"assistant","content":null},…}]}
//   data: {…, "choices":[{"index":0,"delta":{"content":"The"},"finish_reason":null,…}]}
//   data: {…, "choices":[{"index":0,"delta":{},"finish_reason":"stop",…}],"timings":{…}}
//   data: {…, "choices":[], "usage":{…}}        with stream_options.include_usage
//   data: [DONE]
//
// With n choices the lines of all of them are mixed, and "index" tells them apart.
#include "server/openai_shapes.h"

namespace limpid {
namespace {

class ChatShape final : public OpenAiShape {
 public:
  ChatShape(const ApiCall& call, const RequestSettings& settings, Json verbose)
      : OpenAiShape(call, settings, "chatcmpl-", "chat.completion"),
        n_choices_(settings.n_choices),
        verbose_(std::move(verbose)) {}

  std::string prompt_field() const override { return "messages"; }
  std::string begin(int64_t /*n_prompt_tokens*/) override {
    std::string text;
    for (int64_t i = 0; i < n_choices_; ++i) {
      text += chunk({{"index", i},
                     {"delta", {{"role", "assistant"}, {"content", nullptr}}},
                     {"finish_reason", nullptr}});
    }
    return text;
  }

  Json whole(const AnswerResults& results) override {
    Json answer = OpenAiShape::whole(results);
    if (!verbose_.is_null()) answer["__verbose"] = verbose_;
    return answer;
  }

 private:
  Json choice(const TokenEvent& event, const char* finish) override {
    return {{"index", event.choice},
            {"delta", event.text.empty() ? Json::object() : Json{{"content", event.text}}},
            {"logprobs", event.logprobs.empty() ? Json() : logprobs(event.logprobs)},
            {"finish_reason", finish == nullptr ? Json() : Json(finish)}};
  }

  Json whole_choice(size_t index, const AnswerResults& results) override {
    const GenerationResult& result = results.choices[index];
    return {{"index", index},
            {"message", {{"role", "assistant"}, {"content", result.text}}},
            {"logprobs", logprobs(result.logprobs)},
            {"finish_reason", finish_reason(result.stop_reason)}};
  }

  Json logprobs(std::span<const TokenLogprobs> tokens) const {
    return wants_logprobs_ ? Json{{"content", logprobs_to_json(tokens)}, {"refusal", nullptr}}
                           : Json();
  }

  const int64_t n_choices_;
  const Json verbose_;
};

// Also for the endpoint that only counts: a request that cannot be answered cannot be counted.
struct ChatRequest {
  RequestSettings settings;
  std::vector<TokenId> prompt;
};

ChatRequest read_chat(const ApiCall& call) {
  const JsonBody body(call.request.body);
  ChatRequest chat{call.read_settings(body, kChatApi), {}};
  check_continues_last(body);
  chat.prompt = encode_messages(call.served, body.required("messages"), chat.settings);
  return chat;
}

}  // namespace

void chat_completions(const ApiCall& call) {
  ChatRequest chat = read_chat(call);
  Json verbose;  // llama-server's, if it is asked for
  if (chat.settings.verbose || call.api.options().verbose)
    verbose["prompt"] = call.served.model.decode(chat.prompt, true);
  auto shape = std::make_unique<ChatShape>(call, chat.settings, std::move(verbose));
  answer(call, chat.settings, {std::move(chat.prompt)}, std::move(shape));
}

void chat_input_tokens(const ApiCall& call) {
  call.send({{"object", "chat.completion.input_tokens"},
             {"input_tokens", read_chat(call).prompt.size()}});
}

}  // namespace limpid
