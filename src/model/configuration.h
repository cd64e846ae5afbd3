// A model's shape without its weights: from a built-in name, or from a configuration's keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"
#include "model/decoder_spec.h"

namespace limpid {

// Names of published models: "llama-3-8b", "gpt2-xl", …
std::span<const std::string_view> configuration_names();

// A canonical checkpoint with the keys of the named model and all of its tensors by name and shape,
// f32 and without data. Throws ArgumentError for a name that is not known.
Checkpoint named_configuration(std::string_view name);

// The same for a config.json or params.json, or a folder that holds one. Throws ArgumentError when
// there is none, FormatError, UnsupportedError.
Checkpoint configuration_of_files(const std::string& path);

// The same for keys that stand in `canonical` already, among them <architecture>.vocab_size. Throws
// what read_spec throws.
Checkpoint checkpoint_of_shapes(Metadata canonical, const OptionalParts& parts);

}  // namespace limpid
