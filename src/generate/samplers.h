// The samplers that come with Limpid. Their semantics and names are llama.cpp's.
#pragma once

#include <memory>
#include <string_view>

#include "limpid/sampler.hpp"

namespace limpid {

// Creates the sampler of that name in SamplerOptions::order ("typical" and "temp" are accepted
// too). Null when `options` switch it off. Throws ArgumentError, which lists the names, for an
// unknown one.
std::shared_ptr<Sampler> make_sampler(std::string_view name, const SamplerOptions& options);

}  // namespace limpid
