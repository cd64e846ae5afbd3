// /v1/completions: the older API of OpenAI, and the only one that says how likely a prompt is.
// With "echo" the text begins with the prompt. With "logprobs" as well, the first token has null,
// because the model predicts each token from those before it, and nothing is before the first.
// Tests of language models use it: the probability of "Paris" after "The capital of France is" is
// read off the prompt, and nothing is generated ("max_tokens": 0).
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/utf8.h"
#include "server/openai_shapes.h"

namespace limpid {
namespace {

// As JSON has them: bytes that are not UTF-8 are U+FFFD there, one for each broken character.
int64_t n_characters(std::string_view bytes) {
  return static_cast<int64_t>(unicode::n_characters(unicode::replace_invalid(bytes)));
}

// Where the tokens of a text begin, in characters. A character may be made of several tokens: the
// tokens C3 and A9, which are "é", have the same place. But C3 and "a" are U+FFFD and "a".
class TokenPlaces {
 public:
  // `tokenizer` may be null: tokens then have no text.
  explicit TokenPlaces(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Gives the place of `id`, which follows the tokens so far.
  int64_t add(TokenId id) {
    const std::string bytes = text_of(id);
    const std::string first = bytes.substr(0, 1);
    const int64_t place = n_before_ + n_characters(begun_ + first) - std::ssize(first);
    begun_ += bytes;
    const size_t n_whole = unicode::complete_prefix(begun_);
    n_before_ += n_characters(std::string_view(begun_).substr(0, n_whole));
    begun_.erase(0, n_whole);
    return place;
  }
  // The tokens so far are a prompt, and an answer follows. The text has the prompt if it is
  // `echoed`. The answer may complete the last character of the prompt, and then has all of it.
  void begin_answer(bool echoed) { n_before_ = echoed ? n_before_ + n_characters(begun_) : 0; }

 private:
  // Control tokens have no text. The first token of a text lacks the blank that some tokenizers put
  // before it.
  std::string text_of(TokenId id) {
    if (tokenizer_ == nullptr || id >= tokenizer_->vocab_size()) return "";
    const std::string_view bytes = tokenizer_->bytes_of(id);
    const bool is_first = !bytes.empty() && std::exchange(at_start_, false);
    return is_first ? tokenizer_->decode({&id, 1}) : std::string(bytes);
  }

  const Tokenizer* tokenizer_;
  bool at_start_ = true;
  int64_t n_before_ = 0;  // characters that are complete
  std::string begun_;     // bytes of one that is not
};

constexpr size_t kMostPromptLogprobs = 3'000'000;  // in one answer: 100 MB, made in 500 MB

// Each choice repeats those of its prompt. So a request of 20 KB, with 64 choices of each of 8
// prompts, would ask for gigabytes.
void check_prompt_logprobs(const RequestSettings& settings,
                           const std::vector<std::vector<TokenId>>& prompts) {
  size_t n_tokens = 0;
  for (const auto& prompt : prompts) n_tokens += prompt.size();
  const auto n_each = static_cast<size_t>(1 + settings.n_top_logprobs);
  const size_t n = n_tokens * n_each * static_cast<size_t>(settings.n_choices);
  if (settings.wants_prompt_logprobs() && n > kMostPromptLogprobs)
    throw ApiError(400,
                   fmt::format("logprobs of the echoed prompts would be {} in all choices, and at "
                               "most {} fit in an answer: ask for fewer of them, or for fewer "
                               "prompts or choices",
                               n, kMostPromptLogprobs),
                   "logprobs");
}

class CompletionShape final : public OpenAiShape {
 public:
  CompletionShape(const ApiCall& call, const RequestSettings& settings,
                  const std::vector<std::vector<TokenId>>& prompts)
      : OpenAiShape(call, settings, "cmpl-", "text_completion"),
        tells_prompt_(settings.wants_prompt_logprobs()),
        tokenizer_(call.served.tokenizer_or_null()),
        n_each_(static_cast<size_t>(settings.n_choices)) {
    check_prompt_logprobs(settings, prompts);
    for (const auto& prompt : prompts) {
      if (settings.echo) echoes_.push_back(call.served.model.decode(prompt));
      TokenPlaces places(tokenizer_);
      for (size_t i = 0; wants_logprobs_ && i < prompt.size(); ++i) places.add(prompt[i]);
      places.begin_answer(settings.echo);
      places_.insert(places_.end(), n_each_, places);
    }
  }

  std::string begin(int64_t /*n_prompt_tokens*/) override {
    std::string text;
    for (size_t i = 0; i < places_.size() && !echoes_.empty() && !tells_prompt_; ++i)
      text += chunk(choice({.choice = i, .text = echo_of(i)}, nullptr));
    return text;
  }

  // With log-probabilities the repeated prompt waits until they are known.
  std::string prompt(size_t index, std::span<const TokenLogprobs> tokens) override {
    return chunk(prompt_choice(index, tokens));
  }

 private:
  std::string_view echo_of(size_t choice) const {
    return echoes_.empty() ? std::string_view() : echoes_[choice / n_each_];
  }

  // The text and the log-probabilities of `rest` follow those of `whole`.
  static void append(Json& whole, const Json& rest) {
    whole["text"] = whole["text"].get<std::string>() + rest["text"].get<std::string>();
    whole["finish_reason"] = rest["finish_reason"];
    if (rest["logprobs"].is_null()) return;
    for (const auto& [key, values] : rest["logprobs"].items())
      whole["logprobs"][key].insert(whole["logprobs"][key].end(), values.begin(), values.end());
  }

  Json prompt_choice(size_t index, std::span<const TokenLogprobs> tokens) const {
    TokenPlaces places(tokenizer_);
    return choice_with(logprobs(tokens, places), index, echo_of(index), nullptr);
  }

  Json choice(const TokenEvent& event, const char* finish) override {
    return choice_with(wants_logprobs_ ? logprobs(event.logprobs, places_[event.choice]) : Json(),
                       event.choice, event.text, finish);
  }

  Json whole_choice(size_t index, const AnswerResults& results) override {
    const GenerationResult& result = results.choices[index];
    Json whole = tells_prompt_ ? prompt_choice(index, results.prompts[index / n_each_])
                               : choice({.choice = index, .text = echo_of(index)}, nullptr);
    append(whole,
           choice({index, result.text, {}, result.logprobs}, finish_reason(result.stop_reason)));
    return whole;
  }

  static Json choice_with(Json logprobs, size_t index, std::string_view text, const char* finish) {
    return {{"index", index},
            {"text", text},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", finish == nullptr ? Json() : Json(finish)}};
  }

  // The best tokens, and the chosen one, which may not be among them. Of tokens with the same text
  // (two that are parts of characters, say) the most probable one counts.
  static Json top_logprobs(const TokenLogprobs& token) {
    Json top = Json::object();
    const auto add = [&](const TokenLogprob& other) {
      top.emplace(unicode::replace_invalid(other.piece), finite_logprob(other.logprob));
    };
    for (const TokenLogprob& other : token.best) add(other);
    add(token.chosen);
    return top;
  }

  // The older shape: {"tokens": [" a"], "token_logprobs": [-1.5], "top_logprobs": [{" a": -1.5}],
  // "text_offset": [0]}, where an offset counts characters.
  static Json logprobs(std::span<const TokenLogprobs> tokens, TokenPlaces& places) {
    Json json = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
    for (const TokenLogprobs& token : tokens) {
      json["tokens"].push_back(token.chosen.piece);
      const bool is_first = std::isnan(token.chosen.logprob);  // of a prompt
      json["token_logprobs"].push_back(is_first ? Json()
                                                : Json(finite_logprob(token.chosen.logprob)));
      json["top_logprobs"].push_back(is_first ? Json() : top_logprobs(token));
      json["text_offset"].push_back(places.add(token.chosen.id));
    }
    return json;
  }

  const bool tells_prompt_;
  const Tokenizer* const tokenizer_;  // may be null
  const size_t n_each_;
  std::vector<std::string> echoes_;  // the text of each prompt; nothing where it is not repeated
  std::vector<TokenPlaces> places_;  // of each choice's tokens
};

}  // namespace

void completions(const ApiCall& call) { continue_prompts<CompletionShape>(call, kCompletionsApi); }

}  // namespace limpid
