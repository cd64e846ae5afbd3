// How large the numbers of a tensor are, counted by powers of two.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/parameters.h"

namespace limpid {

// counts[i] numbers have a magnitude in [2^(lowest + i), 2^(lowest + i + 1)). Smaller magnitudes
// and zeros count in the first bin of all, larger ones in the last one.
struct ValueHistogram {
  static constexpr int kLowest = -40;  // of all bins
  static constexpr int kHighest = 9;

  int lowest = 0;               // exponent of counts[0]
  std::vector<int64_t> counts;  // from the first bin with a number to the last one
};

// Counts of the values divided by 2^exponent, by the exponents of their bits, so it costs one pass
// over memory.
ValueHistogram histogram_of(std::span<const float> values, int exponent = 0);
// Adds the counts of `more`.
void add_histogram(ValueHistogram& sum, const ValueHistogram& more);

// A line of histograms.jsonl: {"step": …, "weights": {"blk.0.attn_q.weight": [lowest, counts…], …},
// "gradients": {…}}. Gradients are those that were computed from these weights; only parameters
// that learn have them.
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
