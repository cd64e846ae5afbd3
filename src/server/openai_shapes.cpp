#include "server/openai_shapes.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>

namespace limpid {

// Clients keep answers by their ids, so one must not come again after a restart of the server: each
// thread begins with randomness of the system.
std::string new_id(std::string_view prefix) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{std::random_device()()};
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

std::string rfc3339(int64_t unix_time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_time)));
}

const char* finish_reason(StopReason reason) {
  return reason == StopReason::kLength ? "length" : "stop";
}

// The first token comes from the prompt's last step, so the rate of generation counts the others.
Json timings_json(const GenerationTimings& timings) {
  const int64_t n_steps = std::max<int64_t>(timings.n_generated - 1, 0);
  const auto rate = [](int64_t n, double seconds) {
    return seconds > 0 ? static_cast<double>(n) / seconds : 0.0;
  };
  const auto each = [](int64_t n, double seconds) {
    return n > 0 ? 1000 * seconds / static_cast<double>(n) : 0.0;
  };
  return {
      {"cache_n", timings.n_reused},
      {"prompt_n", timings.n_prompt},
      {"prompt_ms", 1000 * timings.prompt_seconds},
      {"prompt_per_token_ms", each(timings.n_prompt, timings.prompt_seconds)},
      {"prompt_per_second", rate(timings.n_prompt, timings.prompt_seconds)},
      {"predicted_n", timings.n_generated},
      {"predicted_ms", 1000 * timings.generation_seconds},
      {"predicted_per_token_ms", each(n_steps, timings.generation_seconds)},
      {"predicted_per_second", rate(n_steps, timings.generation_seconds)},
  };
}

Json progress_json(const PromptProgress& progress) {
  return {{"total", progress.n_total},
          {"cache", progress.n_found},
          {"processed", progress.n_done},
          {"time_ms", 1000 * progress.seconds}};
}

Json timings_json(const PromptProgress& progress) {
  return timings_json(GenerationTimings{.n_prompt = progress.n_done - progress.n_found,
                                        .n_reused = progress.n_found,
                                        .prompt_seconds = progress.seconds});
}

OpenAiShape::OpenAiShape(const ApiCall& call, const RequestSettings& settings,
                         std::string_view id_prefix, std::string object)
    : wants_logprobs_(settings.wants_logprobs),
      include_usage_(settings.include_usage),
      id_(new_id(id_prefix)),
      object_(std::move(object)),
      model_(call.served.name),
      fingerprint_(call.api.fingerprint()) {
  // "data: {…, "choices":[" precedes every choice of a stream, and "]}" follows it.
  chunk_head_ = "data: " + dump_json(this->object(Json::array(), true));
  chunk_head_.resize(chunk_head_.size() - 2);
}

Json OpenAiShape::object(Json choices, bool is_chunk) const {
  const bool is_chat = object_ == "chat.completion";
  return {{"id", id_},
          {"object", is_chat && is_chunk ? "chat.completion.chunk" : object_},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", fingerprint_},
          {"choices", std::move(choices)}};
}

// The prompt counts once, however many choices continue it.
Json OpenAiShape::object_of_all(Json choices, bool is_chunk, const AnswerResults& results) const {
  Json all = object(std::move(choices), is_chunk);
  all["usage"] = {{"prompt_tokens", results.n_prompt_tokens},
                  {"completion_tokens", results.n_generated},
                  {"total_tokens", results.n_prompt_tokens + results.n_generated},
                  {"prompt_tokens_details", {{"cached_tokens", results.n_cached_tokens}}}};
  all["timings"] = timings_json(results.choices.front().timings);
  return all;
}

// Once for each token of each client, so what does not change is not written by the JSON library
// again.
std::string OpenAiShape::chunk(const Json& choice, std::string_view rest) const {
  return chunk_head_ + dump_json(choice) + "]" + std::string(rest) + "}\n\n";
}

// The times come with the end of a choice, unless an event with the usage follows.
std::string OpenAiShape::choice_end(const TokenEvent& rest, const GenerationResult& result) {
  const Json last = choice(rest, finish_reason(result.stop_reason));
  if (include_usage_) return chunk(last);
  return chunk(last, ",\"timings\":" + dump_json(timings_json(result.timings)));
}

std::string OpenAiShape::progress(const PromptProgress& progress) {
  Json event = object(Json::array({choice({.choice = progress.choice}, nullptr)}), true);
  event["prompt_progress"] = progress_json(progress);
  event["timings"] = timings_json(progress);
  return sse_event(event);
}

std::string OpenAiShape::end(const AnswerResults& results) {
  std::string text;
  if (include_usage_) text = sse_event(object_of_all(Json::array(), true, results));
  return text.append(kSseDone);
}

Json OpenAiShape::whole(const AnswerResults& results) {
  auto choices = Json::array();
  for (size_t i = 0; i < results.choices.size(); ++i) choices.push_back(whole_choice(i, results));
  return object_of_all(std::move(choices), false, results);
}

}  // namespace limpid
