// How large the numbers of a tensor are, counted by powers of two.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "train/parameters.h"

namespace limpid {

// counts[i] numbers have a magnitude in [2^(kLowest + i), 2^(kLowest + i + 1)). Smaller magnitudes
// and zeros count in the first bin, larger ones in the last one.
struct ValueHistogram {
  static constexpr int kLowest = -40;
  static constexpr int kHighest = 9;

  std::array<int64_t, kHighest - kLowest + 1> counts{};
};

// Counts of the values divided by 2^exponent, by the exponents of their bits, so it costs one pass
// over memory.
ValueHistogram histogram_of(std::span<const float> values, int exponent = 0);
// Adds the counts of `more`.
void add_histogram(ValueHistogram& sum, const ValueHistogram& more);

// A line of histograms.jsonl: {"step": …, "weights": {"blk.0.attn_q.weight": [lowest, counts…], …},
// "gradients": {…}}. The counts are those from the first bin with a number to the last one, and
// `lowest` is the exponent of the first. Gradients are those that were computed from these weights;
// only parameters that learn have them.
struct HistogramLine {
  int64_t step = 0;
  std::map<std::string, ValueHistogram> weights;
  std::map<std::string, ValueHistogram> gradients;
};
// What the memory of the gradients holds is `loss_scale` times the gradients (loss_scale.h).
HistogramLine histograms_of(int64_t step, std::span<const Parameter> parameters, double loss_scale);
std::string to_json_line(const HistogramLine& line);
// Throws nlohmann::json::exception for another object.
HistogramLine histogram_line(const nlohmann::json& json);

}  // namespace limpid
