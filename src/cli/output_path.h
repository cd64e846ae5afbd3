// Places on the disk: checks of where a command will write, made before the work begins, and sizes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/paths.h"
#include "checkpoint/checkpoint.h"

namespace limpid::cli {

// Writes a whole file, or standard output where `path` is "-". Throws ResourceError.
void write_text(const std::string& path, std::string_view text);

// The file at the end of the links that begin at `path`; it need not exist yet. `path` itself if it
// is not a link, or leads to a folder or a device.
std::string at_end_of_links(const std::string& path);

// Throws ArgumentError when `path` is "-": a model is not written in order, so it needs a file.
void refuse_standard_output(const std::string& path);

// Throws ResourceError when a file at `path` cannot be written. Leaves no file.
void check_writable(const std::string& path);

// How much a folder and the folders in it hold. Files that disappear meanwhile are not counted.
struct FolderSize {
  uint64_t n_files = 0;
  uint64_t n_bytes = 0;
};
FolderSize size_of_folder(const std::filesystem::path& folder);

// Throws ArgumentError when writing the file or folder `path` would replace a file that
// `checkpoint` is read from: weights, a configuration or a file of the tokenizer.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint);
// The same for other files and folders that the command reads. An empty name is none.
void check_not_an_input(const std::string& path, std::span<const std::string> inputs);

// For a command that writes a file about a model: throws as check_not_the_input and check_writable
// do. No path, and "-", can always be written to.
void check_output(const std::string& path, const Checkpoint& checkpoint);

}  // namespace limpid::cli
