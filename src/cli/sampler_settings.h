// The numbers of SamplerOptions, each an option of the command line and a setting of /set in a chat
// under the same name: "temp", "top-k", …
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "cli/model_path.h"
#include "limpid/model.hpp"
#include "limpid/sampler.hpp"

namespace limpid::cli {

// Declares an option for each. The names of those that are given go to `given`.
void declare_settings(CLI::App& app, SamplerOptions& sampler, std::vector<std::string>& given);

// Takes any spelling of the option, also with '_' for '-', and returns the setting's own name.
// Throws ArgumentError for an unknown name (with the nearest one) and for a value that is not a
// number, or not in its range.
std::string_view set_sampler(std::string_view name, std::string_view value,
                             SamplerOptions& sampler);

// "temp 0.2, top-p 0.9": each as set_sampler.
void set_samplers(std::string_view list, SamplerOptions& sampler);

// The settings in which `sampler` differs from `other`, in the form that set_samplers reads.
std::string differing_settings(const SamplerOptions& sampler, const SamplerOptions& other);

// Those whose names are in `names`, in the form that set_samplers reads.
std::string list_settings(const std::vector<std::string>& names, const SamplerOptions& sampler);

// The same as members of a request to a server, under the names that llama-server gives them:
// "temperature", "top_k", …
void add_settings(const std::vector<std::string>& names, const SamplerOptions& sampler,
                  nlohmann::ordered_json& request);

// All of them, in the form that set_samplers reads.
std::string all_settings(const SamplerOptions& sampler);

// What the model recommends. The settings of a model that `pull` knows (`named`, or null) were
// tried with Limpid, so they have priority over the file's own.
SamplerOptions recommended_sampler(const LanguageModel& model, const NamedModel* named);

// Takes each setting from `recommended` whose name is not in `given`. Returns what changed, as
// differing_settings.
std::string apply_recommended(const std::vector<std::string>& given,
                              const SamplerOptions& recommended, SamplerOptions& sampler);

}  // namespace limpid::cli
