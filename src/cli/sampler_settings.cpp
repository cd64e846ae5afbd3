#include "cli/sampler_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <variant>
#include <vector>

#include "base/check.h"

namespace limpid::cli {
namespace {

struct Setting {
  std::string_view name;  // of the flag, without its dashes
  std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, int64_t SamplerOptions::*>
      member;
};

constexpr Setting kSettings[] = {
    {"temp", &SamplerOptions::temperature},
    {"top-k", &SamplerOptions::top_k},
    {"top-p", &SamplerOptions::top_p},
    {"min-p", &SamplerOptions::min_p},
    {"typical", &SamplerOptions::typical_p},
    {"top-nsigma", &SamplerOptions::top_n_sigma},
    {"xtc-probability", &SamplerOptions::xtc_probability},
    {"xtc-threshold", &SamplerOptions::xtc_threshold},
    {"repeat-last-n", &SamplerOptions::repeat_last_n},
    {"repeat-penalty", &SamplerOptions::repeat_penalty},
    {"presence-penalty", &SamplerOptions::presence_penalty},
    {"frequency-penalty", &SamplerOptions::frequency_penalty},
    {"seed", &SamplerOptions::seed},
};

// "name value" of every setting that `wanted` accepts, with commas between.
template <typename Predicate>
std::string listed(const SamplerOptions& sampler, Predicate wanted) {
  std::string list;
  for (const Setting& setting : kSettings) {
    std::visit(
        [&](auto member) {
          if (!wanted(member)) return;
          list += fmt::format("{}{} {}", list.empty() ? "" : ", ", setting.name, sampler.*member);
        },
        setting.member);
  }
  return list;
}

}  // namespace

void set_sampler(std::string_view name, std::string_view value, SamplerOptions& sampler) {
  for (const Setting& setting : kSettings) {
    if (setting.name != name) continue;
    std::visit(
        [&](auto member) {
          auto number = sampler.*member;
          const char* end = value.data() + value.size();
          const auto [after, error] = std::from_chars(value.data(), end, number);
          LIMPID_CHECK(ArgumentError, error == std::errc() && after == end, "{} '{}': is not a {}",
                       name, value,
                       std::is_integral_v<decltype(number)> ? "whole number" : "number");
          sampler.*member = number;
        },
        setting.member);
    return;
  }
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) names.emplace_back(setting.name);
  const std::string suggestion = nearest(name, names);
  throw ArgumentError(suggestion.empty()
                          ? fmt::format("no setting '{}'", name)
                          : fmt::format("no setting '{}'; did you mean {}?", name, suggestion));
}

void set_samplers(std::string_view list, SamplerOptions& sampler) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(", "));
    list.remove_prefix(std::min(list.size(), entry.size() + 2));
    const size_t space = std::min(entry.find(' '), entry.size());
    set_sampler(entry.substr(0, space), entry.substr(std::min(space + 1, entry.size())), sampler);
  }
}

std::string differing_settings(const SamplerOptions& sampler, const SamplerOptions& other) {
  return listed(sampler, [&](auto member) { return sampler.*member != other.*member; });
}

std::string all_settings(const SamplerOptions& sampler) {
  return listed(sampler, [](auto) { return true; });
}

std::string apply_recommended(const Flags& flags, const SamplerOptions& recommended,
                              SamplerOptions& sampler) {
  const SamplerOptions before = sampler;
  for (const Setting& setting : kSettings) {
    if (flags.given("--" + std::string(setting.name))) continue;
    std::visit([&](auto member) { sampler.*member = recommended.*member; }, setting.member);
  }
  return differing_settings(sampler, before);
}

}  // namespace limpid::cli
