// Counters and histograms in Prometheus' text format, version 0.0.4.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/scheduler.h"
#include "limpid/generation.hpp"

namespace limpid {

// How many observed values lie at or below each bound. May be used by many threads.
class Histogram {
 public:
  // `bounds` rise and outlive the histogram.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value);
  // NAME_bucket{le="…"}, NAME_sum and NAME_count, with `label` (may be empty) before the others.
  void print(std::string_view name, std::string_view label, std::string& out) const;

 private:
  std::span<const double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // of each interval
  std::atomic<double> sum_ = 0;
};

using Counter = std::atomic<double>;

// What a server counts for a model. llama-server's names where it has the same number, and Limpid's
// for the rest.
struct Metrics {
  // Of one finished continuation. For one thread at a time: the engine's.
  void add(const GenerationTimings& finished);
  // The text of an embedding: a prompt without an answer.
  void add_embedded(double n_tokens);

  Counter n_requests, n_failed, n_cancelled;
  Counter n_prompt_tokens, prompt_seconds, n_generated_tokens, generation_seconds;
  Counter n_reused_tokens, n_embedded_tokens;  // the latter are also among n_prompt_tokens
  // Upper bounds of the histograms' buckets. Prometheus estimates a quantile from the bucket that
  // it lies in, so bounds that grow by 2 to 2.5 tell it within a factor of that.
  static constexpr double kSeconds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                        2.5,   5,    10,    25,   50,  100,  250};
  static constexpr double kShortSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                             0.05,   0.1,   0.25,   0.5,   1,    2.5};
  static constexpr double kTokens[] = {0,   1,    2,    4,    8,    16,    32,    64,    128,   256,
                                       512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
  Histogram first_token_seconds{kSeconds}, token_seconds{kShortSeconds}, queue_seconds{kSeconds};
  Histogram prompt_sizes{kTokens}, reused_sizes{kTokens}, answer_sizes{kTokens};
  Histogram context_sizes{kTokens};
  Counter most_context;  // the longest prompt with its answer
};

struct ModelMetrics {
  std::string model;  // its label; "": none
  const Metrics& metrics;
  Scheduler::Usage usage;
};
// All of it, in the format's order: one metric after the other, each with a line for each model.
std::string metrics_text(std::span<const ModelMetrics> models);

}  // namespace limpid
