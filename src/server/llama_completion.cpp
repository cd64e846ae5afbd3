// llama-server's /completion. It has neither roles nor a first or last event of its own: each piece
// of text is an object, and the last object of a choice has "stop": true and tells everything else.
//
//   data: {"index":0, "content":"The", "tokens":[504], "stop":false, …}
//   data: {"index":0, "content":"", "tokens":[], "stop":true, "stop_type":"limit", "timings":{…},
//   …}
#include <fmt/format.h>

#include "server/openai_shapes.h"

namespace limpid {
namespace {

// Of all answers to a request.
constexpr size_t kMostToldBiases = 32 << 10;
constexpr size_t kMostGrammarBytes = 16 << 20;

// Each answer repeats the settings. So a request of 200 KB, with 16,000 biases for 512 prompts,
// would get an answer of 350 MB, which takes 4 GB while it is made.
void check_repeated(const char* field, size_t n, const char* unit, size_t n_prompts, size_t most) {
  if (n * n_prompts <= most) return;
  throw ApiError(
      400,
      fmt::format("{} has {} {}, and there are {} prompts: each answer repeats them, and "
                  "all together have at most {}",
                  field, n, unit, n_prompts, most),
      field);
}

const char* stop_type(StopReason reason) {
  if (reason == StopReason::kEndOfText) return "eos";
  if (reason == StopReason::kStopString) return "word";
  return reason == StopReason::kLength ? "limit" : "none";
}

class LlamaShape final : public AnswerShape {
 public:
  LlamaShape(const ApiCall& call, const RequestSettings& settings,
             const std::vector<std::vector<TokenId>>& prompts)
      : settings_(settings),
        model_(call.served.name),
        n_ctx_(call.served.n_ctx()),
        tokenizer_(call.served.tokenizer_or_null()) {
    check_repeated("logit_bias", settings.generation.sampler.logit_bias.size(), "tokens",
                   prompts.size(), kMostToldBiases);
    check_repeated("grammar", settings.grammar.size(), "bytes", prompts.size(), kMostGrammarBytes);
    for (const auto& prompt : prompts)
      choices_.push_back({call.served.model.decode(prompt, true), std::ssize(prompt)});
  }

  void slot(size_t choice, int64_t slot) override { choices_[choice].slot = slot; }
  std::string progress(const PromptProgress& progress) override {
    return sse_event({{"index", progress.choice},
                      {"content", ""},
                      {"tokens", Json::array()},
                      {"stop", false},
                      {"id_slot", choices_[progress.choice].slot},
                      {"tokens_predicted", 0},
                      {"tokens_evaluated", progress.n_done},
                      {"prompt_progress", progress_json(progress)},
                      {"timings", timings_json(progress)}});
  }

  std::string token(const TokenEvent& event) override {
    Choice& choice = choices_[event.choice];
    choice.n_predicted += std::ssize(event.ids);
    Json json = {{"index", event.choice},
                 {"content", event.text},
                 {"tokens", event.ids},
                 {"stop", false},
                 {"id_slot", choice.slot},
                 {"tokens_predicted", choice.n_predicted},
                 {"tokens_evaluated", choice.n_prompt}};
    add_probabilities(event.logprobs, json);
    return sse_event(json);
  }

  std::string choice_end(const TokenEvent& rest, const GenerationResult& result) override {
    return sse_event(finished(rest.choice, result, "", rest.ids, rest.logprobs));
  }

  std::string end(const AnswerResults& /*results*/) override { return ""; }
  std::string failure(const ApiError& error) override {
    return sse_event(error_json(style(), error));
  }

  Json whole(const AnswerResults& results) override {
    auto all = Json::array();
    for (size_t i = 0; i < results.choices.size(); ++i) {
      const GenerationResult& result = results.choices[i];
      all.push_back(finished(i, result, result.text, result.ids, result.logprobs));
    }
    return all.size() == 1 ? all.front() : all;
  }

 private:
  struct Choice {
    std::string prompt;
    int64_t n_prompt;
    int64_t slot = -1;
    int64_t n_predicted = 0;
  };

  void add_probabilities(std::span<const TokenLogprobs> logprobs, Json& json) const {
    if (!settings_.wants_logprobs) return;
    json["completion_probabilities"] =
        logprobs_to_json(logprobs, settings_.generation.logprobs_after_sampling);
  }

  // The last object of a choice; in a stream it repeats neither text nor tokens.
  Json finished(size_t index, const GenerationResult& result, const std::string& content,
                std::span<const TokenId> ids, std::span<const TokenLogprobs> logprobs) const {
    const Choice& choice = choices_[index];
    Json settings = generation_settings_json(settings_.generation, tokenizer_);
    settings["seed"] = result.seed;
    settings["grammar"] = settings_.grammar;
    const bool lists_tokens = settings_.return_tokens || settings_.stream;
    const int64_t n_cached = choice.n_prompt + std::ssize(result.ids);
    Json json = {{"index", index},
                 {"content", content},
                 {"tokens", lists_tokens ? Json(ids) : Json::array()},
                 {"id_slot", choice.slot},
                 {"stop", true},
                 {"model", model_},
                 {"tokens_predicted", result.timings.n_generated},
                 {"tokens_evaluated", choice.n_prompt},
                 {"generation_settings", std::move(settings)},
                 {"prompt", choice.prompt},
                 {"has_new_line", result.text.find('\n') != std::string::npos},
                 {"truncated", choice.n_prompt + result.timings.n_generated >= n_ctx_},
                 {"stop_type", stop_type(result.stop_reason)},
                 {"stopping_word", result.stop_string},
                 {"tokens_cached", n_cached},
                 {"timings", timings_json(result.timings)}};
    add_probabilities(logprobs, json);
    return settings_.response_fields.empty() ? json : chosen_fields(json);
  }

  // The keys of the answer are the names as they were asked for: of {"response_fields":
  // ["content", "timings/predicted_n"]} comes {"content": "The", "timings/predicted_n": 9}.
  Json chosen_fields(const Json& json) const {
    Json chosen = Json::object();
    for (const std::string& name : settings_.response_fields) {
      const size_t slash = std::min(name.find('/'), name.size());
      const auto outer = json.find(name.substr(0, slash));
      if (outer == json.end()) continue;
      if (slash == name.size()) {
        chosen[name] = *outer;
      } else if (outer->contains(name.substr(slash + 1))) {
        chosen[name] = outer->at(name.substr(slash + 1));
      }
    }
    return chosen;
  }

  const RequestSettings settings_;
  const std::string model_;
  const int64_t n_ctx_;
  const Tokenizer* const tokenizer_;
  std::vector<Choice> choices_;  // one of each prompt
};

}  // namespace

void llama_completion(const ApiCall& call) { continue_prompts<LlamaShape>(call, kLlamaApi); }

}  // namespace limpid
