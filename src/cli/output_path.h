// Checks of the place where a command will write, made before the work begins.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid::cli {

// Writes a whole file, or standard output where `path` is "-". Throws ResourceError.
void write_text(const std::string& path, std::string_view text);

// Throws ArgumentError when `path` is "-": a model is not written in order, so it needs a file.
void refuse_standard_output(const std::string& path);

// Throws ResourceError when a file at `path` cannot be written. Leaves no file.
void check_writable(const std::string& path);

// Throws ArgumentError when writing the file or folder `path` would replace a file that
// `checkpoint` is read from.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint);

}  // namespace limpid::cli
