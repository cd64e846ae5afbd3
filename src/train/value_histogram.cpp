#include "train/value_histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

namespace limpid {
namespace {

constexpr size_t kBins = ValueHistogram::kHighest - ValueHistogram::kLowest + 1;

nlohmann::json to_json(const std::map<std::string, ValueHistogram>& histograms) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, histogram] : histograms) {
    nlohmann::json& numbers = json[name] = {histogram.lowest};
    for (const int64_t count : histogram.counts) numbers.push_back(count);
  }
  return json;
}

std::map<std::string, ValueHistogram> from_json(const nlohmann::json& json) {
  std::map<std::string, ValueHistogram> histograms;
  for (const auto& [name, numbers] : json.items()) {
    const auto all = numbers.get<std::vector<int64_t>>();
    if (all.empty()) continue;
    histograms[name] = {static_cast<int>(all[0]), {all.begin() + 1, all.end()}};
  }
  return histograms;
}

}  // namespace

// The exponent of an f32 is in bits 23 to 30, with 127 added. Example: 0.75 = 1.5 * 2^-1 has 126
// there, so it counts in bin -1, from 0.5 to 1. The table of 256 counters stays in the cache, and
// the loop has no branch.
ValueHistogram histogram_of(std::span<const float> values, int exponent) {
  std::array<int64_t, 256> by_exponent{};
  for (const float value : values) ++by_exponent[std::bit_cast<uint32_t>(value) >> 23U & 0xFFU];
  std::array<int64_t, kBins> counts{};
  for (int biased = 0; biased < 256; ++biased) {
    const int bin =
        std::clamp(biased - 127 - exponent, ValueHistogram::kLowest, ValueHistogram::kHighest) -
        ValueHistogram::kLowest;
    counts[static_cast<size_t>(bin)] += by_exponent[static_cast<size_t>(biased)];
  }
  const auto has_some = [](int64_t count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, has_some);
  auto last = counts.end();
  while (last != first && *(last - 1) == 0) --last;
  return {ValueHistogram::kLowest + static_cast<int>(first - counts.begin()), {first, last}};
}

void add_histogram(ValueHistogram& sum, const ValueHistogram& more) {
  if (more.counts.empty()) return;
  if (sum.counts.empty()) {
    sum = more;
    return;
  }
  if (more.lowest < sum.lowest) {
    sum.counts.insert(sum.counts.begin(), static_cast<size_t>(sum.lowest - more.lowest), 0);
    sum.lowest = more.lowest;
  }
  const auto offset = static_cast<size_t>(more.lowest - sum.lowest);
  sum.counts.resize(std::max(sum.counts.size(), offset + more.counts.size()), 0);
  for (size_t i = 0; i < more.counts.size(); ++i) sum.counts[offset + i] += more.counts[i];
}

// The scale is a power of two, so the counts are exact.
HistogramLine histograms_of(int64_t step, std::span<const Parameter> parameters,
                            double loss_scale) {
  HistogramLine line{step, {}, {}};
  for (const Parameter& parameter : parameters) {
    line.weights[parameter.name] = histogram_of(parameter.value->f32());
    if (parameter.learns)
      line.gradients[parameter.name] =
          histogram_of(parameter.gradient.f32(), std::ilogb(loss_scale));
  }
  return line;
}

std::string to_json_line(const HistogramLine& line) {
  const nlohmann::ordered_json json{{"step", line.step},
                                    {"weights", to_json(line.weights)},
                                    {"gradients", to_json(line.gradients)}};
  return json.dump();
}

HistogramLine histogram_line(const nlohmann::json& json) {
  return {json.at("step"), from_json(json.at("weights")), from_json(json.at("gradients"))};
}

}  // namespace limpid
