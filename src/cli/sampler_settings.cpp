// One table for the options of the command line (--top-p 0.9), the commands of a chat (/set top-p
// 0.9), the list that /set shows, and the settings that `pull` knows for a model.
//
// A setting has one row: its option, the member of SamplerOptions that it sets, its range and its
// help. A new sampler with one number is a row more, and nothing else in this room changes.
#include "cli/sampler_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/check.h"
#include "base/text.h"

namespace limpid::cli {
namespace {

constexpr Range kAny{-1e30, 1e30};
constexpr Range kProbability{0, 1};
constexpr Range kPositive{0, 1e30};

struct Setting {
  std::string_view declaration;  // of the option
  std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, int64_t SamplerOptions::*>
      member;
  Range range;
  std::string_view help;
  std::string_view env{};

  // "--temp,--temperature X" -> "temp"
  [[nodiscard]] std::string_view name() const {
    const std::string_view from = declaration.substr(declaration.find("--") + 2);
    return from.substr(0, from.find_first_of(", "));
  }
  // "-s,--seed N" -> "s", "seed"
  [[nodiscard]] std::vector<std::string> spellings() const {
    std::vector<std::string> names = split_list(declaration.substr(0, declaration.find(' ')));
    for (std::string& name : names) name.erase(0, name.find_first_not_of('-'));
    return names;
  }
  // The last spelling, which is the longest: "--typical,--typical-p X" -> "typical_p"
  [[nodiscard]] std::string name_in_requests() const {
    std::string name = spellings().back();
    std::ranges::replace(name, '-', '_');
    return name;
  }
};

constexpr Setting kSettings[] = {
    {"-s,--seed N",
     &SamplerOptions::seed,
     {-1},
     "seed of the random choices; -1: a random one (-1)"},
    {"--temp,--temperature X", &SamplerOptions::temperature, kAny,
     "how much chance decides: logits are divided by X; 0: always the likeliest token (0.8)",
     "LLAMA_ARG_TEMPERATURE"},
    {"--top-k N", &SamplerOptions::top_k, kAny, "only the N likeliest tokens; 0: off (40)",
     "LLAMA_ARG_TOP_K"},
    {"--top-p X", &SamplerOptions::top_p, kPositive,
     "only the likeliest tokens that sum to probability X; 1: off (0.95)", "LLAMA_ARG_TOP_P"},
    {"--min-p X", &SamplerOptions::min_p, kProbability,
     "only tokens of X times the largest probability or more; 0: off (0.05)", "LLAMA_ARG_MIN_P"},
    {"--typical,--typical-p X", &SamplerOptions::typical_p, kPositive,
     "only the most typical tokens that sum to probability X; 1: off (1)"},
    {"--top-nsigma,--top-n-sigma X", &SamplerOptions::top_n_sigma, kAny,
     "only logits within X standard deviations of the largest; 0 or less: off (-1)"},
    {"--xtc-probability X", &SamplerOptions::xtc_probability, kProbability,
     "how often all tokens above the threshold but the least likely are dropped; 0: off (0)"},
    {"--xtc-threshold X", &SamplerOptions::xtc_threshold, kPositive,
     "probability from which --xtc-probability drops tokens; above 0.5: off (0.1)"},
    {"--repeat-last-n N",
     &SamplerOptions::repeat_last_n,
     {-1},
     "tokens that the penalties look at; 0: none, -1: all (64)"},
    {"--repeat-penalty X",
     &SamplerOptions::repeat_penalty,
     {1e-3, 1e3},
     "makes recent tokens less likely: positive logits are divided by X, others multiplied; 1: off "
     "(1)",
     "LLAMA_ARG_REPEAT_PENALTY"},
    {"--presence-penalty X", &SamplerOptions::presence_penalty, kAny,
     "subtracted from the logit of each recent token; 0: off (0)", "LLAMA_ARG_PRESENCE_PENALTY"},
    {"--frequency-penalty X", &SamplerOptions::frequency_penalty, kAny,
     "subtracted for each time that a recent token occurred; 0: off (0)",
     "LLAMA_ARG_FREQUENCY_PENALTY"},
};

// Reads the setting from `text`. Returns the problem with the text, or "".
std::string read(const Setting& setting, const std::string& text, SamplerOptions& sampler) {
  return std::visit([&](auto member) { return read_value(text, setting.range, sampler.*member); },
                    setting.member);
}

// Calls act(setting, pointer to its member) for each setting.
template <typename Act>
void for_each(Act act) {
  for (const Setting& setting : kSettings)
    std::visit([&](auto member) { act(setting, member); }, setting.member);
}

bool contains(const std::vector<std::string>& names, const Setting& setting) {
  return std::ranges::find(names, setting.name()) != names.end();
}

// "name value" of every setting that `wanted` accepts, with commas between.
template <typename Predicate>
std::string listed(const SamplerOptions& sampler, Predicate wanted) {
  std::vector<std::string> list;
  for_each([&](const Setting& setting, auto member) {
    if (wanted(setting, member))
      list.push_back(fmt::format("{} {}", setting.name(), sampler.*member));
  });
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

// A setting that is given twice keeps the last value, as other options do.
void declare_settings(CLI::App& app, SamplerOptions& sampler, std::vector<std::string>& given) {
  for (const Setting& setting : kSettings) {
    const auto read_it = [&](const std::string& text) {
      given.emplace_back(setting.name());
      return read(setting, text, sampler);
    };
    add_list(app, setting.declaration, read_it, std::string(setting.help), setting.env);
  }
}

std::string_view set_sampler(std::string_view name, std::string_view value,
                             SamplerOptions& sampler) {
  std::string with_dashes(name);
  std::ranges::replace(with_dashes, '_', '-');
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) {
    const std::vector<std::string> spellings = setting.spellings();
    names.insert(names.end(), spellings.begin(), spellings.end());
    if (std::ranges::find(spellings, with_dashes) == spellings.end()) continue;
    const std::string problem = read(setting, std::string(value), sampler);
    LIMPID_CHECK(ArgumentError, problem.empty(), "{}: {}", name, problem);
    return setting.name();
  }
  const std::string advice = did_you_mean(name, names);
  throw ArgumentError(
      fmt::format("no setting '{}'{}", name, advice.empty() ? "; /set lists them" : advice));
}

// "temp 0, repeat-penalty 1.1" -> set_sampler("temp", "0"), set_sampler("repeat-penalty", "1.1")
void set_samplers(std::string_view list, SamplerOptions& sampler) {
  for (const std::string& entry : split_list(list)) {
    const size_t space = std::min(entry.find(' '), entry.size());
    set_sampler(entry.substr(0, space), entry.substr(std::min(space + 1, entry.size())), sampler);
  }
}

std::string differing_settings(const SamplerOptions& sampler, const SamplerOptions& other) {
  return listed(sampler, [&](auto&, auto member) { return sampler.*member != other.*member; });
}

std::string list_settings(const std::vector<std::string>& names, const SamplerOptions& sampler) {
  return listed(sampler, [&](const Setting& setting, auto) { return contains(names, setting); });
}

void add_settings(const std::vector<std::string>& names, const SamplerOptions& sampler,
                  nlohmann::ordered_json& request) {
  for_each([&](const Setting& setting, auto member) {
    if (contains(names, setting)) request[setting.name_in_requests()] = sampler.*member;
  });
}

std::string all_settings(const SamplerOptions& sampler) {
  return listed(sampler, [](auto&, auto) { return true; });
}

// The order of precedence is: options of the user, recommendations for the model, defaults of
// Limpid. An option counts as given even when its value is the default.
SamplerOptions recommended_sampler(const LanguageModel& model, const NamedModel* named) {
  SamplerOptions recommended = model.recommended_sampler();
  if (named != nullptr) set_samplers(named->sampling, recommended);
  return recommended;
}

std::string apply_recommended(const std::vector<std::string>& given,
                              const SamplerOptions& recommended, SamplerOptions& sampler) {
  const SamplerOptions before = sampler;
  for_each([&](const Setting& setting, auto member) {
    if (!contains(given, setting)) sampler.*member = recommended.*member;
  });
  return differing_settings(sampler, before);
}

}  // namespace limpid::cli
