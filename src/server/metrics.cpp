#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace limpid {
namespace {

constexpr double kSeconds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                               2.5,   5,    10,    25,   50,  100,  250};
constexpr double kShortSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                    0.05,   0.1,   0.25,   0.5,   1,    2.5};
constexpr double kTokens[] = {1,   2,    4,    8,    16,   32,    64,    128,   256,
                              512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

void print_head(std::string_view name, std::string_view help, std::string_view type,
                std::string& out) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

double rate(const Counter& amount, const Counter& seconds) {
  return seconds.value() > 0 ? amount.value() / seconds.value() : 0;
}

}  // namespace

void Histogram::observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::print(std::string_view name, std::string_view help, std::string& out) const {
  print_head(name, help, "histogram", out);
  uint64_t n_below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    n_below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], n_below);
  }
  n_below += counts_[bounds_.size()];
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, n_below,
                     sum_.load());
}

void Counter::print(std::string_view name, std::string_view help, std::string& out) const {
  print_head(name, help, "counter", out);
  out += fmt::format("{} {}\n", name, value_.load());
}

void print_gauge(std::string_view name, std::string_view help, double value, std::string& out) {
  print_head(name, help, "gauge", out);
  out += fmt::format("{} {}\n", name, value);
}

Metrics::Metrics()
    : first_token_seconds(kSeconds),
      token_seconds(kShortSeconds),
      queue_seconds(kSeconds),
      prompt_sizes(kTokens),
      answer_sizes(kTokens) {}

void Metrics::add(const Finished& finished) {
  n_prompt_tokens.add(finished.n_prompt);
  n_reused_tokens.add(finished.n_reused);
  prompt_seconds.add(finished.prompt_seconds);
  n_generated_tokens.add(finished.n_generated);
  generation_seconds.add(finished.generation_seconds);
  prompt_sizes.observe(finished.n_prompt + finished.n_reused);
  answer_sizes.observe(finished.n_generated);
  if (finished.n_generated > 0)
    token_seconds.observe(finished.generation_seconds / finished.n_generated);
}

std::string Metrics::text(const Scheduler::Usage& usage) const {
  std::string out;
  const auto gauge = [&](std::string_view name, std::string_view help, int64_t value) {
    print_gauge(name, help, static_cast<double>(value), out);
  };
  n_prompt_tokens.print("llamacpp:prompt_tokens_total", "Prompt tokens evaluated.", out);
  prompt_seconds.print("llamacpp:prompt_seconds_total", "Time spent on prompts.", out);
  n_generated_tokens.print("llamacpp:tokens_predicted_total", "Tokens generated.", out);
  generation_seconds.print("llamacpp:tokens_predicted_seconds_total", "Time spent on them.", out);
  n_reused_tokens.print("llamacpp:prompt_tokens_cached_total",
                        "Prompt tokens that were in the KV cache.", out);
  print_gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens a second.",
              rate(n_prompt_tokens, prompt_seconds), out);
  print_gauge("llamacpp:predicted_tokens_seconds", "Generated tokens a second.",
              rate(n_generated_tokens, generation_seconds), out);
  gauge("llamacpp:requests_processing", "Requests being worked on.", usage.n_running);
  gauge("llamacpp:requests_deferred", "Requests in the queue.", usage.n_waiting);
  gauge("limpid:kv_blocks", "Blocks of the KV cache, of 64 positions each.", usage.n_blocks);
  gauge("limpid:kv_blocks_used", "Of these, in use.", usage.n_blocks - usage.n_free_blocks);
  gauge("limpid:kv_blocks_cached", "Of these, kept for prompts that begin alike.",
        usage.n_idle_blocks);
  gauge("limpid:preemptions_total", "Requests that gave their blocks up, and went on later.",
        usage.n_preempted);
  n_requests.print("limpid:requests_total", "Requests for text.", out);
  n_failed.print("limpid:requests_failed_total", "Of these, failed.", out);
  n_cancelled.print("limpid:requests_cancelled_total", "Of these, left by the client.", out);
  first_token_seconds.print("limpid:time_to_first_token_seconds",
                            "From a request to its first token.", out);
  token_seconds.print("limpid:time_per_token_seconds",
                      "Time per generated token, a mean for each answer.", out);
  queue_seconds.print("limpid:queue_seconds", "Time that requests waited.", out);
  prompt_sizes.print("limpid:prompt_tokens", "Tokens of each prompt.", out);
  answer_sizes.print("limpid:generated_tokens", "Tokens of each answer.", out);
  return out;
}

}  // namespace limpid
