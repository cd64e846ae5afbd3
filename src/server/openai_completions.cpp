// /v1/completions: the older API of OpenAI, and the only one that says how likely a prompt is.
// With "echo" the text begins with the prompt, and with "logprobs" as well, the first token has
// null: the model predicts each token from those before it, and nothing is before the first. Tests
// of language models use it: the probability of "Paris" after "The capital of France is" is read
// off the prompt, and nothing is generated ("max_tokens": 0).
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "server/openai_shapes.h"

namespace limpid {
namespace {

int64_t n_characters(std::string_view text) {
  return static_cast<int64_t>(unicode::n_characters(text));
}

class CompletionShape final : public OpenAiShape {
 public:
  // `echoes` has the text of each prompt; nothing where it is not to be repeated.
  CompletionShape(const ApiCall& call, const RequestSettings& settings,
                  std::vector<std::string> echoes, size_t n_prompts)
      : OpenAiShape(call, settings, "cmpl-", "text_completion"),
        tells_prompt_(settings.wants_prompt_logprobs()),
        tokenizer_(call.served.tokenizer_or_null()),
        echoes_(std::move(echoes)),
        n_each_(static_cast<size_t>(settings.n_choices)),
        offsets_(n_prompts * n_each_, 0) {
    for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = n_characters(echo_of(i));
  }

  std::string begin(int64_t /*n_prompt_tokens*/) override {
    std::string text;
    for (size_t i = 0; i < offsets_.size() && !echoes_.empty() && !tells_prompt_; ++i)
      text += chunk(choice(i, echo_of(i), {}, nullptr));
    return text;
  }

  // With log-probabilities the repeated prompt waits until they are known.
  std::string prompt(size_t index, std::span<const TokenLogprobs> tokens) override {
    return chunk(prompt_choice(index, tokens));
  }

  std::string progress(const PromptProgress& progress) override {
    return progress_chunk(choice(progress.choice, "", {}, nullptr), progress);
  }

  std::string token(const TokenEvent& event) override {
    return chunk(choice(event.choice, std::string(event.text), event.logprobs, nullptr));
  }

  std::string choice_end(const TokenEvent& rest, const GenerationResult& result) override {
    return last_chunk(choice(rest.choice, "", rest.logprobs, finish_reason(result.stop_reason)),
                      result.timings);
  }

  Json whole(const AnswerResults& results) override {
    auto choices = Json::array();
    for (size_t i = 0; i < results.choices.size(); ++i) {
      const GenerationResult& result = results.choices[i];
      Json whole = tells_prompt_ ? prompt_choice(i, results.prompts[i / n_each_])
                                 : choice(i, echo_of(i), {}, nullptr);
      const Json rest = choice(i, result.text, result.logprobs, finish_reason(result.stop_reason));
      append(whole, rest);
      choices.push_back(std::move(whole));
    }
    return object_of_all(std::move(choices), false, results);
  }

 private:
  std::string echo_of(size_t choice) const {
    return echoes_.empty() ? "" : echoes_[choice / n_each_];
  }

  // The text and the log-probabilities of `rest` follow those of `whole`.
  static void append(Json& whole, const Json& rest) {
    whole["text"] = whole["text"].get<std::string>() + rest["text"].get<std::string>();
    whole["finish_reason"] = rest["finish_reason"];
    if (rest["logprobs"].is_null()) return;
    for (const auto& [key, values] : rest["logprobs"].items())
      whole["logprobs"][key].insert(whole["logprobs"][key].end(), values.begin(), values.end());
  }

  // How many characters of the text are the token's: of a control token none.
  int64_t length_of(const TokenLogprob& token) const {
    const bool is_hidden = tokenizer_ != nullptr && token.id < tokenizer_->vocab_size() &&
                           tokenizer_->is_control(token.id);
    return is_hidden ? 0 : n_characters(token.piece);
  }

  // The offsets of the prompt end where its text does. They begin below 0 where the text lacks the
  // blank that some tokenizers put before it; logprobs() gives 0 for these.
  Json prompt_choice(size_t index, std::span<const TokenLogprobs> tokens) {
    const int64_t n_echo = offsets_[index];
    for (const TokenLogprobs& token : tokens) offsets_[index] -= length_of(token.chosen);
    Json json = choice(index, echo_of(index), tokens, nullptr);
    offsets_[index] = n_echo;
    return json;
  }

  Json choice(size_t index, std::string text, std::span<const TokenLogprobs> tokens,
              const char* finish) {
    return {{"index", index},
            {"text", std::move(text)},
            {"logprobs", wants_logprobs_ ? logprobs(index, tokens) : Json()},
            {"finish_reason", finish == nullptr ? Json() : Json(finish)}};
  }

  // The older shape: {"tokens": [" a"], "token_logprobs": [-1.5], "top_logprobs": [{" a": -1.5}],
  // "text_offset": [0]}, where an offset counts characters.
  Json logprobs(size_t index, std::span<const TokenLogprobs> tokens) {
    Json json = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
    for (const TokenLogprobs& token : tokens) {
      json["tokens"].push_back(token.chosen.piece);
      const bool is_first = std::isnan(token.chosen.logprob);  // of a prompt
      json["token_logprobs"].push_back(is_first ? Json()
                                                : Json(finite_logprob(token.chosen.logprob)));
      Json best = Json::object();
      for (const TokenLogprob& other : token.best)
        best.emplace(other.piece, finite_logprob(other.logprob));
      json["top_logprobs"].push_back(is_first ? Json() : std::move(best));
      json["text_offset"].push_back(std::max<int64_t>(offsets_[index], 0));
      offsets_[index] += length_of(token.chosen);
    }
    return json;
  }

  const bool tells_prompt_;
  const Tokenizer* const tokenizer_;  // may be null
  const std::vector<std::string> echoes_;
  const size_t n_each_;
  std::vector<int64_t> offsets_;  // of each choice's next token
};

}  // namespace

void completions(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const RequestSettings settings = call.read_settings(body, kCompletionsApi);
  const JsonField field = body.required("prompt");
  std::vector<std::vector<TokenId>> prompts = read_prompts(call.served, field);
  std::vector<std::string> echoes;
  if (settings.echo) {
    for (const auto& prompt : prompts) echoes.push_back(call.served.model.decode(prompt));
  }
  const size_t n_prompts = prompts.size();
  call.answer_with(settings, std::move(prompts),
                   std::make_unique<CompletionShape>(call, settings, echoes, n_prompts));
}

}  // namespace limpid
