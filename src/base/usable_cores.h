// The number of cores that this process may use.
#pragma once

namespace limpid {

// At least 1; fewer than the machine has when the process is bound to some of its cores.
int usable_cores();

}  // namespace limpid
