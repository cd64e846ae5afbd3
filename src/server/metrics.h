// Counters and histograms in Prometheus' text format, version 0.0.4.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "generate/scheduler.h"
#include "limpid/generation.hpp"

namespace limpid {

// How many observed values lie at or below each bound. May be used by many threads.
class Histogram {
 public:
  static constexpr size_t kMostBounds = 20;
  // `bounds` rise, are at most kMostBounds, and outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void observe(double value);
  // NAME_bucket{le="…"}, NAME_sum and NAME_count, with `label` (may be empty) before the others.
  void print(std::string_view name, std::string_view label, std::string& out) const;

 private:
  std::span<const double> bounds_;
  std::array<std::atomic<uint64_t>, kMostBounds + 1> counts_{};  // of each interval
  std::atomic<double> sum_ = 0;
};

using Counter = std::atomic<double>;

// The largest observed value; 0 before the first. May be used by many threads.
class Maximum {
 public:
  void observe(double value) {
    double known = value_;
    while (known < value && !value_.compare_exchange_weak(known, value)) {
    }
  }
  double value() const { return value_; }

 private:
  std::atomic<double> value_ = 0;
};

// What a server counts for a model. llama-server's names where it has the same number, and Limpid's
// for the rest.
struct Metrics {
  Metrics();

  // Of one finished continuation.
  void add(const GenerationTimings& finished);
  // The text of an embedding: a prompt without an answer.
  void add_embedded(double n_tokens);

  Counter n_requests, n_failed, n_cancelled;
  Counter n_prompt_tokens, prompt_seconds, n_generated_tokens, generation_seconds;
  Counter n_reused_tokens, n_embedded_tokens;  // the latter are also among n_prompt_tokens
  Histogram first_token_seconds, token_seconds, queue_seconds;
  Histogram prompt_sizes, reused_sizes, answer_sizes, context_sizes;
  Maximum most_context;
};

struct ModelMetrics {
  std::string model;  // its label; "": none
  const Metrics& metrics;
  Scheduler::Usage usage;
};
// All of it, in the format's order: one metric after the other, each with a line for each model.
std::string metrics_text(std::span<const ModelMetrics> models);

}  // namespace limpid
