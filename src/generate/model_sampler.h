// The samplers that a model's publisher recommends.
#pragma once

#include "checkpoint/metadata.h"
#include "limpid/sampler.hpp"

namespace limpid {

// SamplerOptions{} but for what general.sampling.* state (GGUF's keys; a Hugging Face folder's
// generation_config.json is translated into them): temp, top_k, top_p, min_p, xtc_probability,
// xtc_threshold, penalty_last_n, penalty_repeat. Throws UnsupportedError naming a key of the wrong
// type, FormatError one that is no finite number or out of range.
SamplerOptions model_sampler_options(const Metadata& metadata, const std::string& path);

}  // namespace limpid
