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

namespace limpid {
namespace {

// Upper bounds of the histograms' buckets. Prometheus estimates a quantile from the bucket that it
// lies in, so bounds that grow by 2 to 2.5 tell it within a factor of that.
constexpr double kSeconds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                               2.5,   5,    10,    25,   50,  100,  250};
constexpr double kShortSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                    0.05,   0.1,   0.25,   0.5,   1,    2.5};
constexpr double kTokens[] = {0,   1,    2,    4,    8,    16,    32,    64,    128,   256,
                              512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

void print_head(std::string_view name, std::string_view help, std::string_view type,
                std::string& out) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

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

// Prints one metric after the other, each of them for all models.
class MetricsPrinter {
 public:
  explicit MetricsPrinter(std::span<const ModelMetrics> models) : models_(models) {}

  template <typename Value>
  void numbers(std::string_view name, std::string_view help, std::string_view type, Value value) {
    print_head(name, help, type, out_);
    for (const ModelMetrics& model : models_)
      out_ += fmt::format("{}{} {}\n", name, in_braces(label_of(model.model)), value(model));
  }
  void counter(std::string_view name, std::string_view help, Counter Metrics::*counter) {
    numbers(name, help, "counter",
            [counter](const ModelMetrics& model) { return (model.metrics.*counter).load(); });
  }
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    numbers(name, help, "gauge", value);
  }
  void usage(std::string_view name, std::string_view help, std::string_view type,
             int64_t Scheduler::Usage::*member) {
    numbers(name, help, type, [member](const ModelMetrics& model) { return model.usage.*member; });
  }
  void histogram(std::string_view name, std::string_view help, Histogram Metrics::*histogram) {
    print_head(name, help, "histogram", out_);
    for (const ModelMetrics& model : models_)
      (model.metrics.*histogram).print(name, label_of(model.model), out_);
  }

  std::string text() && { return std::move(out_); }

 private:
  const std::span<const ModelMetrics> models_;
  std::string out_;
};

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

Metrics::Metrics()
    : first_token_seconds(kSeconds),
      token_seconds(kShortSeconds),
      queue_seconds(kSeconds),
      prompt_sizes(kTokens),
      reused_sizes(kTokens),
      answer_sizes(kTokens),
      context_sizes(kTokens) {}

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
  most_context.observe(n_context);
}

void Metrics::add_embedded(double n_tokens) {
  n_prompt_tokens += n_tokens;
  n_embedded_tokens += n_tokens;
  prompt_sizes.observe(n_tokens);
}

std::string metrics_text(std::span<const ModelMetrics> models) {
  MetricsPrinter out(models);
  using Usage = Scheduler::Usage;
  out.counter("llamacpp:prompt_tokens_total", "Prompt tokens evaluated.",
              &Metrics::n_prompt_tokens);
  out.counter("llamacpp:prompt_seconds_total", "Time spent on prompts.", &Metrics::prompt_seconds);
  out.counter("llamacpp:tokens_predicted_total", "Tokens generated.", &Metrics::n_generated_tokens);
  out.counter("llamacpp:tokens_predicted_seconds_total", "Time spent on them.",
              &Metrics::generation_seconds);
  out.counter("llamacpp:prompt_tokens_cached_total", "Prompt tokens that were in the KV cache.",
              &Metrics::n_reused_tokens);
  out.gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens a second.",
            [](const ModelMetrics& model) {
              const Metrics& of = model.metrics;  // of embeddings the time is not measured
              return rate(of.n_prompt_tokens - of.n_embedded_tokens, of.prompt_seconds);
            });
  out.gauge("llamacpp:predicted_tokens_seconds", "Generated tokens a second.",
            [](const ModelMetrics& model) {
              return rate(model.metrics.n_generated_tokens, model.metrics.generation_seconds);
            });
  out.usage("llamacpp:n_decode_total", "Passes over the weights.", "counter", &Usage::n_passes);
  out.gauge("llamacpp:n_busy_slots_per_decode", "Sequences of a pass, on average.",
            [](const ModelMetrics& model) {
              const double n_passes = static_cast<double>(model.usage.n_passes);
              return n_passes > 0 ? static_cast<double>(model.usage.n_in_passes) / n_passes : 0;
            });
  out.gauge("llamacpp:n_tokens_max", "Tokens of the longest prompt with its answer.",
            [](const ModelMetrics& model) { return model.metrics.most_context.value(); });
  out.usage("llamacpp:requests_processing", "Requests being worked on.", "gauge",
            &Usage::n_running);
  out.usage("llamacpp:requests_deferred", "Requests in the queue.", "gauge", &Usage::n_waiting);
  out.usage("limpid:kv_blocks", "Blocks of the KV cache, of 64 positions each.", "gauge",
            &Usage::n_blocks);
  out.gauge("limpid:kv_blocks_used", "Of these, in use.", [](const ModelMetrics& model) {
    return model.usage.n_blocks - model.usage.n_free_blocks;
  });
  out.usage("limpid:kv_blocks_cached", "Of these, kept for prompts that begin alike.", "gauge",
            &Usage::n_idle_blocks);
  out.usage("limpid:preemptions_total", "Requests that gave their blocks up, and went on later.",
            "counter", &Usage::n_preempted);
  out.counter("limpid:requests_total", "Requests for text.", &Metrics::n_requests);
  out.counter("limpid:requests_failed_total", "Of these, failed.", &Metrics::n_failed);
  out.counter("limpid:requests_cancelled_total", "Of these, left by the client.",
              &Metrics::n_cancelled);
  out.histogram("limpid:time_to_first_token_seconds", "From a request to its first token.",
                &Metrics::first_token_seconds);
  out.histogram("limpid:time_per_token_seconds", "From one token of an answer to the next.",
                &Metrics::token_seconds);
  out.histogram("limpid:queue_seconds", "Time that requests waited.", &Metrics::queue_seconds);
  out.histogram("limpid:prompt_tokens", "Tokens of each prompt.", &Metrics::prompt_sizes);
  out.histogram("limpid:reused_tokens", "Of these, found in the KV cache.", &Metrics::reused_sizes);
  out.histogram("limpid:generated_tokens", "Tokens of each answer.", &Metrics::answer_sizes);
  out.histogram("limpid:context_tokens", "Tokens of each prompt with its answer.",
                &Metrics::context_sizes);
  return std::move(out).text();
}

}  // namespace limpid
