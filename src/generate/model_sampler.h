// The sampler options that a model's publisher recommends.
#pragma once

#include "checkpoint/metadata.h"
#include "limpid/sampler.hpp"

namespace limpid {

// The defaults of SamplerOptions, replaced where general.sampling.* has a value: temp, top_k,
// top_p, min_p, xtc_probability, xtc_threshold, penalty_last_n, penalty_repeat. These keys are
// GGUF's; a Hugging Face folder's generation_config.json is translated into them. Throws
// UnsupportedError for a key of the wrong type, and FormatError for a number that is not finite or
// is out of range. Both name the key.
SamplerOptions model_sampler_options(const Metadata& metadata, const std::string& path);

}  // namespace limpid
