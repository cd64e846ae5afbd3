// Which names of a scope are undefined until the scope assigns them (see LateNames in ast.h).
#pragma once

#include "jinja/ast.h"

namespace limpid::jinja {

void find_late_names(Template& parsed);

}  // namespace limpid::jinja
