// JSON <-> values.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "jinja/value.h"

namespace limpid::jinja {

// Throws Fault for integers beyond 64 bits and for nesting beyond the limit.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

}  // namespace limpid::jinja
