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

  std::string progress(const PromptProgress& progress) override {
    return progress_chunk(choice({progress.choice, {}, {}, {}}, Json::object(), nullptr), progress);
  }

  std::string token(const TokenEvent& event) override {
    return chunk(choice(event, {{"content", event.text}}, nullptr));
  }

  std::string choice_end(const TokenEvent& rest, const GenerationResult& result) override {
    return last_chunk(choice(rest, Json::object(), finish_reason(result.stop_reason)),
                      result.timings);
  }

  Json whole(const AnswerResults& results) override {
    auto choices = Json::array();
    for (size_t i = 0; i < results.choices.size(); ++i) {
      const GenerationResult& result = results.choices[i];
      choices.push_back({{"index", i},
                         {"message", {{"role", "assistant"}, {"content", result.text}}},
                         {"logprobs", logprobs(result.logprobs)},
                         {"finish_reason", finish_reason(result.stop_reason)}});
    }
    Json answer = object_of_all(std::move(choices), false, results);
    if (!verbose_.is_null()) answer["__verbose"] = verbose_;
    return answer;
  }

 private:
  Json logprobs(std::span<const TokenLogprobs> tokens) const {
    return wants_logprobs_ ? Json{{"content", logprobs_to_json(tokens)}, {"refusal", nullptr}}
                           : Json();
  }

  Json choice(const TokenEvent& event, Json delta, const char* finish) const {
    return {{"index", event.choice},
            {"delta", std::move(delta)},
            {"logprobs", event.logprobs.empty() ? Json() : logprobs(event.logprobs)},
            {"finish_reason", finish == nullptr ? Json() : Json(finish)}};
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
  auto shape = std::make_unique<ChatShape>(call, chat.settings,
                                           verbose_json(call, chat.settings, chat.prompt));
  call.answer_with(chat.settings, {std::move(chat.prompt)}, std::move(shape));
}

void chat_input_tokens(const ApiCall& call) {
  call.send({{"object", "chat.completion.input_tokens"},
             {"input_tokens", read_chat(call).prompt.size()}});
}

}  // namespace limpid
