// Where a command is about to write, looked at before the work begins.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid::cli {

// Writes a whole file, or standard output where `path` is "-". Throws ResourceError.
void write_text(const std::string& path, std::string_view text);

// Throws ArgumentError when `path` is "-": a model is not written from front to back.
void refuse_standard_output(const std::string& path);

// Throws ResourceError when a file at `path` could not be written. Leaves nothing behind.
void check_writable(const std::string& path);

// Throws ArgumentError when writing the file or folder `path` would replace a file that
// `checkpoint` is read from.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint);

}  // namespace limpid::cli
