// What happens when a file is truncated while the program reads it through a map.
#pragma once

namespace limpid::cli {

// From now on SIGBUS in a mapped file prints one line that names the file, removes temporary files,
// restores the terminal and exits with code 1. Any other SIGBUS does what it did before.
void handle_bus_errors();

}  // namespace limpid::cli
