// sequence[start:stop:step]
#pragma once

#include "jinja/value.h"

namespace limpid::jinja {

// Bounds are integers or none. Throws Fault for what cannot be sliced.
Value slice(Budget& budget, const Value& of, const Value& start, const Value& stop,
            const Value& step);

}  // namespace limpid::jinja
