#include "layouts/rope_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/parse_number.h"
#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"

namespace limpid {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"none", "linear", "llama3"};
constexpr std::string_view kForms =
    "give none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,ORIGINAL_CONTEXT";

// `turns` is the number of full rotations of the pair within the original context.
double llama3_divisor(const RopeScaling& scaling, double frequency) {
  const double turns =
      static_cast<double>(scaling.original_context) * frequency / (2.0 * std::numbers::pi);
  if (turns > scaling.high_freq_factor) return 1.0;
  if (turns < scaling.low_freq_factor) return scaling.factor;
  // In the transition band the frequency is a weighted mean of f and f / factor, and `kept` is the
  // weight of f: it grows from 0 at low_freq_factor turns to 1 at high_freq_factor turns. The
  // divisor is f divided by this mean. Example: factor 8, 2.5 turns between 1 and 4: kept = 0.5,
  // mean = f * (0.5 / 8 + 0.5) = 0.5625 f, divisor 1.78.
  const double kept =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return 1.0 / ((1.0 - kept) / scaling.factor + kept);
}

// Parses numbers above 0 that are separated by commas.
std::vector<double> parse_numbers(std::string_view whole, std::string_view list) {
  std::vector<double> numbers;
  for (size_t at = 0; at <= list.size();) {
    const std::string_view word = list.substr(at, list.find(',', at) - at);
    const auto value = parse_number<double>(word);
    LIMPID_CHECK(ArgumentError, value && std::isfinite(*value) && *value > 0,
                 "rope scaling '{}': {}, with numbers above 0", whole, kForms);
    numbers.push_back(*value);
    at += word.size() + 1;
  }
  return numbers;
}

}  // namespace

std::string_view rope_scaling_name(RopeScalingKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::vector<double> rope_frequencies(double base, int64_t n_rot) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < n_rot / 2; ++i) {
    frequencies.push_back(
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(n_rot)));
  }
  return frequencies;
}

std::vector<float> rope_divisors(const RopeScaling& scaling,
                                 const std::vector<double>& frequencies) {
  std::vector<float> divisors;
  for (const double frequency : frequencies) {
    double divisor = 1.0;
    if (scaling.kind == RopeScalingKind::kLinear) divisor = scaling.factor;
    if (scaling.kind == RopeScalingKind::kLlama3) divisor = llama3_divisor(scaling, frequency);
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

// GGUF files store only the divisors. To export such a model to a layout that states the rule, the
// divisors of each released rule are compared with them bit by bit.
std::optional<RopeScaling> find_rope_scaling(const std::vector<float>& divisors,
                                             const std::vector<double>& frequencies) {
  // Llama 3.1 and 3.3 use 8, Llama 3.2 1B and 3B use 32.
  for (const double factor : {8.0, 32.0}) {
    const RopeScaling released{RopeScalingKind::kLlama3, factor, 1.0, 4.0, 8192};
    if (rope_divisors(released, frequencies) == divisors) return released;
  }
  return std::nullopt;
}

RopeScaling parse_rope_scaling(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto known = std::ranges::find(kNames, name);
  const bool has_numbers = colon != std::string_view::npos;
  LIMPID_CHECK(ArgumentError, known != kNames.end() && has_numbers == (name != kNames[0]),
               "rope scaling '{}': {}", text, kForms);
  RopeScaling scaling;
  scaling.kind = static_cast<RopeScalingKind>(known - kNames.begin());
  if (!has_numbers) return scaling;
  const std::vector<double> numbers = parse_numbers(text, text.substr(colon + 1));
  const size_t n_expected = scaling.kind == RopeScalingKind::kLinear ? 1 : 4;
  LIMPID_CHECK(ArgumentError, numbers.size() == n_expected, "rope scaling '{}': {}", text, kForms);
  scaling.factor = numbers[0];
  if (scaling.kind == RopeScalingKind::kLinear) return scaling;
  scaling.low_freq_factor = numbers[1];
  scaling.high_freq_factor = numbers[2];
  constexpr double kLongest = 1e9;
  LIMPID_CHECK(ArgumentError, numbers[3] <= kLongest && numbers[3] == std::floor(numbers[3]),
               "rope scaling '{}': the original context {} is not a number of tokens", text,
               numbers[3]);
  LIMPID_CHECK(ArgumentError, scaling.low_freq_factor < scaling.high_freq_factor,
               "rope scaling '{}': LOW must be less than HIGH", text);
  scaling.original_context = static_cast<int64_t>(numbers[3]);
  return scaling;
}

void set_rope_scaling_keys(Metadata& metadata, std::string_view architecture,
                           const RopeScaling& scaling) {
  KeyWriter keys(metadata, fmt::format("{}.rope.scaling.", architecture));
  keys.string("type", rope_scaling_name(scaling.kind));
  keys.number("factor", scaling.factor);
  if (scaling.kind != RopeScalingKind::kLlama3) return;
  keys.number("low_freq_factor", scaling.low_freq_factor);
  keys.number("high_freq_factor", scaling.high_freq_factor);
  keys.integer("original_context_length", scaling.original_context);
}

void override_rope_scaling(Checkpoint& checkpoint, const RopeScaling& scaling) {
  const std::string architecture(model_class_of(checkpoint).architecture);
  LIMPID_CHECK(UnsupportedError, checkpoint.find("position_embd.weight") == nullptr,
               "{}: a {} model has learned positions; only rotary ones can be scaled",
               checkpoint.path, architecture);
  set_rope_scaling_keys(checkpoint.metadata, architecture, scaling);
  checkpoint.metadata.set(architecture + ".rope.scaling.overridden", {true, "bool"});
}

}  // namespace limpid
