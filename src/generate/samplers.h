// The samplers that come with Limpid. Their semantics and names are llama.cpp's.
#pragma once

#include <memory>
#include <string_view>

#include "limpid/sampler.hpp"

namespace limpid {

// Creates the sampler of that name in SamplerOptions::order ("typical" and "temp" are accepted
// too). Returns null for an unknown name. A sampler that its options switch off leaves the
// candidates as they are.
std::shared_ptr<Sampler> make_sampler(std::string_view name, const SamplerOptions& options);

// SamplerOptions (limpid/sampler.hpp) documents these numbers and their sources. `min_keep` is the
// least number of candidates that remain.
std::shared_ptr<Sampler> make_penalties(int32_t last_n, float repeat, float presence,
                                        float frequency);
std::shared_ptr<Sampler> make_top_n_sigma(float n);
std::shared_ptr<Sampler> make_top_k(int32_t k);
std::shared_ptr<Sampler> make_typical(float p, int32_t min_keep);
std::shared_ptr<Sampler> make_top_p(float p, int32_t min_keep);
std::shared_ptr<Sampler> make_min_p(float p, int32_t min_keep);
std::shared_ptr<Sampler> make_xtc(float probability, float threshold, int32_t min_keep);
std::shared_ptr<Sampler> make_temperature(float temperature);

}  // namespace limpid
