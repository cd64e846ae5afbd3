// The options of `limpid explain` that change values inside the model, and the interventions that
// follow from them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "insight/contrast.h"
#include "limpid/sampler.hpp"

namespace limpid::cli {

struct WhatIfFlags {
  std::optional<std::string> ablate;  // parts: "L3.H5,L3.mlp"
  std::optional<std::string> patch;   // a text
  std::optional<std::string> steer;   // a text
  std::optional<std::string> minus;   // a text
  std::optional<std::string> parts;   // of patch and steer
  std::string positions;              // of patch
  double strength = 1;                // of steer

  bool is_wanted() const { return ablate || patch || steer; }
};

void declare_what_if(CLI::App& app, WhatIfFlags& values);

// Whether the options go together and name parts of such a model. Throws ArgumentError.
void check_what_if(const WhatIfFlags& values, const DecoderSpec& spec);

// The token ids of a text that one of the options gives.
using Encode = std::function<std::vector<TokenId>(std::string_view text)>;

// The changes that the options, which were checked, ask for; none without options. Patching and
// steering run the model over their own texts. Throws ArgumentError.
std::vector<Edit> edits_of(const WhatIfFlags& values, Model& model, ProbeExecutor& probe,
                           std::span<const TokenId> ids, const Encode& encode);

// "without L3.H5", "with L6 from another text": what the edits do, in words.
std::string describe_edits(const WhatIfFlags& values);

}  // namespace limpid::cli
