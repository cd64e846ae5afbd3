// How many cores this process may use.
#pragma once

namespace limpid {

// At least 1; fewer than the machine has where the process is bound to some of them.
int usable_cores();

}  // namespace limpid
