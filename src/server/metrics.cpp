// What Prometheus reads, for example of three requests that waited 0.004, 0.03 and 0.04 seconds:
//
//   # HELP limpid:queue_seconds Time that requests waited.
//   # TYPE limpid:queue_seconds histogram
//   limpid:queue_seconds_bucket{le="0.005"} 1
//   …
//   limpid:queue_seconds_bucket{le="0.05"} 3      cumulative: at most 0.05 s
//   …
//   limpid:queue_seconds_bucket{le="+Inf"} 3
//   limpid:queue_seconds_sum 0.074
//   limpid:queue_seconds_count 3
//
// Counters and histograms only grow. Prometheus subtracts two readings, so the server never resets
// a number, and a reading that is lost does no harm.
#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace limpid {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// model="a", with the escapes of the format; "" for no name.
std::string label_of(std::string_view model) {
  if (model.empty()) return "";
  std::string label = "model=\"";
  for (const char c : model) {
    if (c == '"' || c == '\\' || c == '\n') label += '\\';
    label += c == '\n' ? 'n' : c;
  }
  return label + '"';
}

std::string in_braces(const std::string& label) { return label.empty() ? "" : "{" + label + "}"; }

double prompt_rate(const ModelMetrics& model) {
  const Metrics& of = model.metrics;  // of embeddings the time is not measured
  return rate(of.n_prompt_tokens - of.n_embedded_tokens, of.prompt_seconds);
}
double generation_rate(const ModelMetrics& model) {
  return rate(model.metrics.n_generated_tokens, model.metrics.generation_seconds);
}
double sequences_of_a_pass(const ModelMetrics& model) {
  const auto n_passes = static_cast<double>(model.usage.n_passes);
  return rate(static_cast<double>(model.usage.n_in_passes), n_passes);
}
double used_blocks(const ModelMetrics& model) {
  return static_cast<double>(model.usage.n_blocks - model.usage.n_free_blocks);
}

struct Metric {
  std::string_view name;  // ends in _total if the number only grows
  std::string_view help;
  std::variant<Counter Metrics::*, int64_t Scheduler::Usage::*, double (*)(const ModelMetrics&),
               Histogram Metrics::*>
      value;
};

using Usage = Scheduler::Usage;
constexpr Metric kMetrics[] = {
    {"llamacpp:prompt_tokens_total", "Prompt tokens evaluated.", &Metrics::n_prompt_tokens},
    {"llamacpp:prompt_seconds_total", "Time spent on prompts.", &Metrics::prompt_seconds},
    {"llamacpp:tokens_predicted_total", "Tokens generated.", &Metrics::n_generated_tokens},
    {"llamacpp:tokens_predicted_seconds_total", "Time spent on them.",
     &Metrics::generation_seconds},
    {"llamacpp:prompt_tokens_cached_total", "Prompt tokens that were in the KV cache.",
     &Metrics::n_reused_tokens},
    {"llamacpp:prompt_tokens_seconds", "Prompt tokens a second.", prompt_rate},
    {"llamacpp:predicted_tokens_seconds", "Generated tokens a second.", generation_rate},
    {"llamacpp:n_decode_total", "Passes over the weights.", &Usage::n_passes},
    {"llamacpp:n_busy_slots_per_decode", "Sequences of a pass, on average.", sequences_of_a_pass},
    {"llamacpp:n_tokens_max", "Tokens of the longest prompt with its answer.",
     &Metrics::most_context},
    {"llamacpp:requests_processing", "Requests being worked on.", &Usage::n_running},
    {"llamacpp:requests_deferred", "Requests in the queue.", &Usage::n_waiting},
    {"limpid:kv_blocks", "Blocks of the KV cache, of 64 positions each.", &Usage::n_blocks},
    {"limpid:kv_blocks_used", "Of these, in use.", used_blocks},
    {"limpid:kv_blocks_cached", "Of these, kept for prompts that begin alike.",
     &Usage::n_idle_blocks},
    {"limpid:preemptions_total", "Requests that gave their blocks up, and went on later.",
     &Usage::n_preempted},
    {"limpid:requests_total", "Requests for text.", &Metrics::n_requests},
    {"limpid:requests_failed_total", "Of these, failed.", &Metrics::n_failed},
    {"limpid:requests_cancelled_total", "Of these, left by the client.", &Metrics::n_cancelled},
    {"limpid:time_to_first_token_seconds", "From a request to its first token.",
     &Metrics::first_token_seconds},
    {"limpid:time_per_token_seconds", "From one token of an answer to the next.",
     &Metrics::token_seconds},
    {"limpid:queue_seconds", "Time that requests waited.", &Metrics::queue_seconds},
    {"limpid:prompt_tokens", "Tokens of each prompt.", &Metrics::prompt_sizes},
    {"limpid:reused_tokens", "Of these, found in the KV cache.", &Metrics::reused_sizes},
    {"limpid:generated_tokens", "Tokens of each answer.", &Metrics::answer_sizes},
    {"limpid:context_tokens", "Tokens of each prompt with its answer.", &Metrics::context_sizes},
};

void print(const Metric& metric, const ModelMetrics& model, std::string& out) {
  const std::string label = label_of(model.model);
  if (const auto* histogram = std::get_if<Histogram Metrics::*>(&metric.value))
    return (model.metrics.**histogram).print(metric.name, label, out);
  out.append(metric.name).append(in_braces(label));
  if (const auto* counter = std::get_if<Counter Metrics::*>(&metric.value))
    out += fmt::format(" {}\n", (model.metrics.**counter).load());
  if (const auto* number = std::get_if<int64_t Usage::*>(&metric.value))
    out += fmt::format(" {}\n", model.usage.**number);
  if (const auto* compute = std::get_if<double (*)(const ModelMetrics&)>(&metric.value))
    out += fmt::format(" {}\n", (*compute)(model));
}

}  // namespace

// Each bucket counts alone here. The format wants each to count those before it too, which print()
// adds up: print() runs seldom, and observe() runs for each request.
void Histogram::observe(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::print(std::string_view name, std::string_view label, std::string& out) const {
  const std::string first = label.empty() ? "" : fmt::format("{},", label);
  const std::string alone = in_braces(std::string(label));
  uint64_t n_below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    n_below += counts_[i];
    out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, first, bounds_[i], n_below);
  }
  n_below += counts_[bounds_.size()];
  out += fmt::format("{0}_bucket{{{1}le=\"+Inf\"}} {2}\n{0}_sum{3} {4}\n{0}_count{3} {2}\n", name,
                     first, n_below, alone, sum_.load());
}

void Metrics::add(const GenerationTimings& finished) {
  const auto n_prompt = static_cast<double>(finished.n_prompt);
  const auto n_reused = static_cast<double>(finished.n_reused);
  const auto n_generated = static_cast<double>(finished.n_generated);
  n_prompt_tokens += n_prompt;
  n_reused_tokens += n_reused;
  prompt_seconds += finished.prompt_seconds;
  n_generated_tokens += n_generated;
  generation_seconds += finished.generation_seconds;
  prompt_sizes.observe(n_prompt + n_reused);
  reused_sizes.observe(n_reused);
  answer_sizes.observe(n_generated);
  const double n_context = n_prompt + n_reused + n_generated;
  context_sizes.observe(n_context);
  if (n_context > most_context) most_context = n_context;
}

void Metrics::add_embedded(double n_tokens) {
  n_prompt_tokens += n_tokens;
  n_embedded_tokens += n_tokens;
  prompt_sizes.observe(n_tokens);
}

std::string metrics_text(std::span<const ModelMetrics> models) {
  std::string text;
  for (const Metric& metric : kMetrics) {
    const std::string_view type = std::holds_alternative<Histogram Metrics::*>(metric.value)
                                      ? "histogram"
                                  : metric.name.ends_with("_total") ? "counter"
                                                                    : "gauge";
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help, type);
    for (const ModelMetrics& model : models) print(metric, model, text);
  }
  return text;
}

}  // namespace limpid
