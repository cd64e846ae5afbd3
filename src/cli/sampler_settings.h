// The numbers of SamplerOptions under the names of their flags: "temp", "top-k", …
#pragma once

#include <string>
#include <string_view>

#include "cli/flags.h"
#include "limpid/sampler.hpp"

namespace limpid::cli {

// Throws ArgumentError for an unknown name (with the nearest one) and for a value that is not a
// number. Ranges are checked where the options are used.
void set_sampler(std::string_view name, std::string_view value, SamplerOptions& sampler);

// "temp 0.2, top-p 0.9": each as set_sampler.
void set_samplers(std::string_view list, SamplerOptions& sampler);

// The settings in which `sampler` differs from `other`, in the form that set_samplers reads.
std::string differing_settings(const SamplerOptions& sampler, const SamplerOptions& other);

// All of them, in the form that set_samplers reads.
std::string all_settings(const SamplerOptions& sampler);

// Takes each setting from `recommended` that no flag gave. Returns what changed, as
// differing_settings.
std::string apply_recommended(const Flags& flags, const SamplerOptions& recommended,
                              SamplerOptions& sampler);

}  // namespace limpid::cli
