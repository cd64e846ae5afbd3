// JSON <-> values.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "jinja/value.h"

namespace limpid::jinja {

// Throws Fault for integers beyond 64 bits and for nesting beyond the limit.
// Numbers keep their kind: 1 is an integer and 1.0 a float, which templates print apart.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

}  // namespace limpid::jinja
