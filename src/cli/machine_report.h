// The description of a machine that `limpid devices` and `limpid doctor` print.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/machine.h"

namespace limpid::cli {

// Lines of a label and what belongs to it; `isas` are the kernels possible here, `isa` the one
// chosen. Limits of no threads were not measured, and are left out.
std::string machine_text(const Machine& machine, const std::vector<std::string>& isas,
                         const std::string& isa, const MachineLimits& limits);
nlohmann::ordered_json machine_json(const Machine& machine, const std::vector<std::string>& isas,
                                    const std::string& isa, const MachineLimits& limits);

}  // namespace limpid::cli
