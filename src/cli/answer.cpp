// A rate is 0 where no time was measured: JSON has no number for infinity.
#include "cli/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/output.h"

namespace limpid::cli {
namespace {

double per_second(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

}  // namespace

Json to_json(const GenerationResult& result, bool knows_ids) {
  const GenerationTimings& timings = result.timings;
  Json json = {
      {"text", result.text}, {"ids", result.ids}, {"stop_reason", to_string(result.stop_reason)}};
  if (result.stop_reason == StopReason::kStopString) json["stop_string"] = result.stop_string;
  if (result.stop_id) json["stop_id"] = *result.stop_id;
  json["seed"] = result.seed;
  json["timings"] = {
      {"n_prompt", timings.n_prompt},
      {"n_reused", timings.n_reused},
      {"prompt_seconds", timings.prompt_seconds},
      {"prompt_tokens_per_second", per_second(timings.n_prompt, timings.prompt_seconds)},
      {"n_generated", timings.n_generated},
      {"generation_seconds", timings.generation_seconds},
      {"tokens_per_second", per_second(timings.n_generated, timings.generation_seconds)}};
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
  for (const GenerationResult& result : results) {
    const GenerationTimings& timings = result.timings;
    sum.n_prompt += timings.n_prompt;
    sum.n_reused += timings.n_reused;
    sum.n_generated += timings.n_generated;
    sum.prompt_seconds = std::max(sum.prompt_seconds, timings.prompt_seconds);
    sum.generation_seconds = std::max(sum.generation_seconds, timings.generation_seconds);
  }
  const std::string reused =
      sum.n_reused > 0 ? fmt::format(" ({} more were in the cache)", sum.n_reused) : "";
  print_log(fmt::format(
      "prompt {}{}, {:.1f} tokens/s; answer {}, {:.1f} tokens/s", count(sum.n_prompt, "token"),
      reused, per_second(sum.n_prompt, sum.prompt_seconds), count(sum.n_generated, "token"),
      per_second(sum.n_generated, sum.generation_seconds)));
}

}  // namespace limpid::cli
