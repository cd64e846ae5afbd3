#include "cli/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace limpid::cli {
namespace {

// Tokens a second; NaN, which is null in JSON, if no token or no time was measured.
double rate(int64_t n, double seconds) {
  return n > 0 && seconds > 0 ? static_cast<double>(n) / seconds : std::nan("");
}

// ", 28.2 tokens/s", or "".
std::string rate_text(int64_t n, double seconds) {
  const double per_second = rate(n, seconds);
  return std::isnan(per_second) ? "" : fmt::format(", {:.1f} tokens/s", per_second);
}

// The tokens that the generation's time covers. The first one comes with the last step of the
// prompt.
int64_t n_timed(const GenerationTimings& timings) {
  return std::max<int64_t>(0, timings.n_generated - 1);
}

}  // namespace

Json to_json(const GenerationResult& result, bool knows_ids) {
  const GenerationTimings& timings = result.timings;
  Json json = {
      {"text", result.text}, {"ids", result.ids}, {"stop_reason", to_string(result.stop_reason)}};
  if (result.stop_reason == StopReason::kStopString) json["stop_string"] = result.stop_string;
  if (result.stop_id) json["stop_id"] = *result.stop_id;
  json["seed"] = result.seed;
  json["timings"] = {{"n_prompt", timings.n_prompt},
                     {"n_reused", timings.n_reused},
                     {"prompt_seconds", timings.prompt_seconds},
                     {"prompt_tokens_per_second", rate(timings.n_prompt, timings.prompt_seconds)},
                     {"n_generated", timings.n_generated},
                     {"generation_seconds", timings.generation_seconds},
                     {"tokens_per_second", rate(n_timed(timings), timings.generation_seconds)}};
  if (!knows_ids) {
    json.erase("ids");
    json.erase("seed");
  }
  return json;
}

// "prompt 3 tokens, … tokens/s; answer 6 tokens, … tokens/s"
// Sequences of one batch run at the same time, so their tokens add up and the longest time counts.
void print_timings(std::span<const GenerationResult> results) {
  GenerationTimings sum;
  int64_t n_timed_tokens = 0;
  for (const GenerationResult& result : results) {
    const GenerationTimings& timings = result.timings;
    sum.n_prompt += timings.n_prompt;
    sum.n_reused += timings.n_reused;
    sum.n_generated += timings.n_generated;
    n_timed_tokens += n_timed(timings);
    sum.prompt_seconds = std::max(sum.prompt_seconds, timings.prompt_seconds);
    sum.generation_seconds = std::max(sum.generation_seconds, timings.generation_seconds);
  }
  const std::string reused =
      sum.n_reused > 0 ? fmt::format(" ({} more were in the cache)", sum.n_reused) : "";
  print_log(fmt::format("prompt {}{}{}; answer {}{}", count(sum.n_prompt, "token"), reused,
                        rate_text(sum.n_prompt, sum.prompt_seconds),
                        count(sum.n_generated, "token"),
                        rate_text(n_timed_tokens, sum.generation_seconds)));
}

}  // namespace limpid::cli
