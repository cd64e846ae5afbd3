// Looks at files and folders. What cannot be seen counts as absent: a name that is too long, a
// folder without permission, a file that another process has just removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace limpid {

bool is_there(const std::filesystem::path& path);  // a file, a folder or something else
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
// The size of a file in bytes; 0 if it does not exist.
uint64_t size_of_file(const std::filesystem::path& path);
// The files and folders in a folder, by name; empty if the folder does not exist.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
// The path for a message: between quotes if nothing of it could be seen.
std::string shown_path(const std::filesystem::path& path);
// The folder that `path` is in: "." for a name alone.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace limpid
