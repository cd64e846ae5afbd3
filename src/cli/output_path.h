// Places on the disk: checks of where a command will write, made before the work begins, and sizes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid::cli {

// Writes a whole file, or standard output where `path` is "-". Throws ResourceError.
void write_text(const std::string& path, std::string_view text);

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
// The files and folders in a folder, by name; empty if the folder does not exist.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
// Whether there is something at `path`, or a folder. False where it cannot be seen: a name that is
// too long, a folder without permission.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
// The size of a file in bytes; 0 if it does not exist.
uint64_t size_of_file(const std::filesystem::path& path);

// Throws ArgumentError when writing the file or folder `path` would replace a file that
// `checkpoint` is read from.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint);

}  // namespace limpid::cli
