// What the user says of a model in place of its files, where a command looks at the model itself.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "cli/options.h"

namespace limpid::cli {

struct ModelOverrides {
  std::string config;  // a JSON file, or JSON itself
  std::string rope_scaling;
};

// --config, --rope-scaling
void declare_overrides(Flags& flags, ModelOverrides& values);

// open_header with them.
std::shared_ptr<const Checkpoint> open_header(const ModelFlags& flags,
                                              const ModelOverrides& overrides);

}  // namespace limpid::cli
