#include "train/value_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace limpid {
namespace {

nlohmann::json to_json(const std::map<std::string, ValueHistogram>& histograms) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, histogram] : histograms) {
    const auto& counts = histogram.counts;
    const auto has_some = [](int64_t count) { return count > 0; };
    const auto first = std::ranges::find_if(counts, has_some);
    auto last = counts.end();
    while (last != first && *(last - 1) == 0) --last;
    std::vector<int64_t> numbers = {ValueHistogram::kLowest + (first - counts.begin())};
    numbers.insert(numbers.end(), first, last);
    json[name] = std::move(numbers);
  }
  return json;
}

std::map<std::string, ValueHistogram> from_json(const nlohmann::json& json) {
  std::map<std::string, ValueHistogram> histograms;
  for (const auto& [name, numbers] : json.items()) {
    const auto all = numbers.get<std::vector<int64_t>>();
    if (all.empty()) continue;
    auto& counts = histograms[name].counts;
    const int64_t lowest =
        std::clamp<int64_t>(all[0], ValueHistogram::kLowest, ValueHistogram::kHighest);
    auto bin = static_cast<size_t>(lowest - ValueHistogram::kLowest);
    for (size_t i = 1; i < all.size() && bin < counts.size(); ++i) counts[bin++] = all[i];
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
  ValueHistogram histogram;
  for (int biased = 0; biased < 256; ++biased) {
    const int bin =
        std::clamp(biased - 127 - exponent, ValueHistogram::kLowest, ValueHistogram::kHighest) -
        ValueHistogram::kLowest;
    histogram.counts[static_cast<size_t>(bin)] += by_exponent[static_cast<size_t>(biased)];
  }
  return histogram;
}

void add_histogram(ValueHistogram& sum, const ValueHistogram& more) {
  for (size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += more.counts[i];
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
