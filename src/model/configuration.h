// A model's shapes without its weights, from a built-in name or from a configuration file. Used to
// estimate memory and speed before anything is downloaded.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"

namespace limpid {

// Names of published models: "llama-3-8b", "gpt2-xl", …
std::span<const std::string_view> configuration_names();
bool is_configuration_name(std::string_view name);

// Returns a canonical checkpoint with the keys of the named model and with all of its tensors as
// names and shapes: f32, without data. Throws ArgumentError, with all names, for an unknown one.
Checkpoint named_configuration(std::string_view name);

// Like named_configuration, for a config.json, a params.json, or a folder that holds one of them; a
// folder with both is read by its config.json. Throws ArgumentError when there is none,
// FormatError, UnsupportedError, ResourceError.
Checkpoint configuration_of_files(const std::string& path);

// One of the two: the configuration of that name, or else what is at the path. So a name means the
// same in every folder, and "./gpt2" is the folder gpt2.
Checkpoint find_configuration(const std::string& path_or_name);

// Like named_configuration, for canonical keys, which must include <architecture>.vocab_size.
// Throws the errors of read_spec. Example: named_configuration("llama-3.2-1b") has
// token_embd.weight [128256, 2048] and no output.weight, because its embeddings are tied.
Checkpoint checkpoint_of_shapes(Metadata canonical, const OptionalParts& parts);

}  // namespace limpid
