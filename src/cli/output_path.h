// Where a command is about to write, looked at before the work begins.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid::cli {

// Throws ResourceError when a file at `path` could not be written. Leaves nothing behind.
void check_writable(const std::string& path);

// Throws ArgumentError when writing the file or folder `path` would replace a file that
// `checkpoint` is read from.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint);

}  // namespace limpid::cli
